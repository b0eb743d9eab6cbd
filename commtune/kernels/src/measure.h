#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend.h"
#include "canary.h"
#include "check.h"
#include "clock.h"
#include "operations.h"
#include "options.h"
#include "stopping.h"
#include "world.h"

namespace commtune {

/// What was measured at one size; complete on rank 0 only.
struct SizeResult {
  Layout layout{};
  int warmup = 0;
  int batch = 1;
  std::vector<double> samples_s;  ///< per operation, maximum over ranks, in the order taken
  Stop stop = Stop::max_samples;
  double first_call_s = 0.0;
  std::optional<double> rank_skew;  ///< median of longest / shortest time over ranks
  std::optional<double> canary_before_ns;
  std::optional<double> canary_after_ns;
  CheckResult check;
  double elapsed_s = 0.0;
};

/// Measures one size after the other.
class Measurer {
 public:
  Measurer(Backend& backend, const World& world, const Clock& clock, const Options& options,
           Canary& canary);

  /// All ranks call it with the same size. Error if a call fails; a wrong result is a result.
  SizeResult measure(std::size_t bytes);

 private:
  struct Samples {
    std::vector<double> longest_s;
    std::vector<double> shortest_s;
  };

  double timed(int times);
  bool takes_part() const;
  double longest_over_ranks(double seconds) const;
  double warm_up(SizeResult& result);
  int choose_batch(double operation_s);
  Samples take_samples(SizeResult& result, double spent_s, double sample_s);
  void poison_received(const Layout& layout);
  void check_received(SizeResult& result);

  Backend& backend_;
  const World& world_;
  const Clock& clock_;
  const Options& options_;
  Canary& canary_;
  StoppingRule rule_;
  double clock_resolution_s_;
  std::unique_ptr<DataPattern> pattern_;
};

}  // namespace commtune
