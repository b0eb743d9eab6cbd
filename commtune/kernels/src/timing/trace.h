#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "ranks/world.h"
#include "timing/measure.h"
#include "timing/message_counts.h"

namespace commtune {

/// What an operation did at one size; complete on rank 0 only.
struct TraceResult {
  std::size_t bytes = 0;
  std::uint64_t operations = 0;
  std::optional<std::string> digest;  ///< none where no order of summation shows
  std::optional<bool> agree;          ///< whether all ranks have the same; allreduce only
  /// Digest of what each rank sent to which other; none where the library doesn't count.
  std::optional<std::string> messages;
};

/// Does the operation without timing it, so that the library can say what it does, and so that
/// the order of a sum can be told from its result, and an algorithm from its messages.
class Tracer {
 public:
  Tracer(const Bench& bench, const World& world, const Options& options)
      : bench_(bench), world_(world), options_(options), counts_(world.communicator()) {}

  /// All ranks call it with the same size. The first call does the operation a few times more
  /// beforehand: libraries may begin with another algorithm (MPICH's release_gather comes into
  /// use at the sixth call). Rank 0 says on standard error which size comes, so
  /// that what the library prints can be told apart by size.
  TraceResult trace(std::size_t bytes);

 private:
  /// Does the operation, and fills in what its results show.
  void see_order(Work& work, const Layout& layout, TraceResult& result);
  std::uint64_t digest_of(Work& work, const Layout& layout, std::uint64_t rounds);
  /// All ranks' changes since an earlier reading as one digest.
  std::optional<std::string> messages_since(
      const std::optional<std::vector<unsigned long>>& before) const;
  void settle(Work& work);

  const Bench& bench_;
  const World& world_;
  const Options& options_;
  MessageCounts counts_;
  bool is_settled_ = false;
};

}  // namespace commtune
