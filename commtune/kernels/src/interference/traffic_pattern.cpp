#include "interference/traffic_pattern.h"

#include <algorithm>
#include <map>

#include "cli/words.h"
#include "error.h"

namespace commtune {

namespace {

constexpr Words<Pattern, 2> kPatterns{
    {{{Pattern::incast, "incast"}, {Pattern::alltoall, "alltoall"}}}};
constexpr int kLargestWindow = 16;
constexpr std::size_t kWindowBytes = std::size_t{256} << 20;
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

std::map<int, std::uint64_t> ranks_by_node(const std::vector<RankPlace>& ranks) {
  std::map<int, std::uint64_t> counts;
  for (const RankPlace& rank : ranks) ++counts[rank.node];
  return counts;
}

}  // namespace

std::string_view word(Pattern pattern) { return kPatterns.word(pattern); }

Pattern parse_pattern(const std::string& text) { return kPatterns.parse("--pattern", text); }

Pairs count_pairs(Pattern pattern, const std::vector<RankPlace>& ranks) {
  const std::uint64_t count = ranks.size();
  auto nodes = ranks_by_node(ranks);
  if (pattern == Pattern::incast) return {count - 1, count - nodes[ranks.front().node]};
  Pairs pairs{count * (count - 1), count * count};
  for (const auto& [node, here] : nodes) pairs.between_nodes -= here * here;
  return pairs;
}

int window_for(const AggressorOptions& options, int ranks) {
  if (ranks < 2) throw UsageError(std::string(word(options.pattern)) + " needs at least 2 ranks");
  const std::size_t bytes = options.message * static_cast<std::size_t>(ranks);
  if (bytes > kMostBytes) {
    throw UsageError("--message: " + std::to_string(options.message) + " bytes for each of " +
                     std::to_string(ranks) + " ranks are more than " + std::to_string(kMostBytes) +
                     " in one rank");
  }
  if (options.pattern == Pattern::alltoall) return 1;
  return static_cast<int>(std::clamp<std::size_t>(kWindowBytes / bytes, 1, kLargestWindow));
}

}  // namespace commtune
