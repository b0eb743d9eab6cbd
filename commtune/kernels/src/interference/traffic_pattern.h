#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "interference/pacing.h"
#include "ranks/placement.h"
#include "ranks/roles.h"

namespace commtune {

/// Who sends to whom in an aggressor: all ranks but the first to the first, or all to all.
enum class Pattern { incast, alltoall };

/// The word on the command line and in the records, and back; UsageError for an unknown one.
std::string_view word(Pattern pattern);
Pattern parse_pattern(const std::string& text);

/// What the command line asks of an aggressor.
struct AggressorOptions {
  Pattern pattern = Pattern::incast;
  std::size_t message = 0;  ///< bytes from one rank to one other
  Bursts bursts;
  std::string stop_file;      ///< ends it when it is there; empty: none
  double longest_s = 3600.0;  ///< since the process started
  AggressorRanks ranks;       ///< beside those that measure in the same run
  std::string backend;        ///< of these; empty: that of the run
};

/// Pairs of ranks of which the first sends to the second.
struct Pairs {
  std::uint64_t all = 0;
  std::uint64_t between_nodes = 0;
};
Pairs count_pairs(Pattern pattern, const std::vector<RankPlace>& ranks);

/// Messages that a sender has under way to one receiver at a time. UsageError if a rank would
/// need too much memory for them.
int window_for(const AggressorOptions& options, int ranks);

}  // namespace commtune
