#include "error.h"
#include "harness.h"
#include "interference/traffic_pattern.h"

using namespace commtune;

namespace {

std::vector<RankPlace> on_nodes(const std::vector<int>& nodes) {
  std::vector<RankPlace> ranks(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) ranks[i].node = nodes[i];
  return ranks;
}

AggressorOptions of(Pattern pattern, std::size_t message) {
  AggressorOptions options;
  options.pattern = pattern;
  options.message = message;
  return options;
}

std::string complaint(Pattern pattern, std::size_t message, int ranks) {
  return harness::message_of<UsageError>([&] { window_for(of(pattern, message), ranks); });
}

constexpr std::size_t kMebibyte = 1 << 20;

}  // namespace

TEST(words_are_read_back) {
  for (const Pattern pattern : {Pattern::incast, Pattern::alltoall}) {
    EXPECT(parse_pattern(std::string(word(pattern))) == pattern);
  }
}

TEST(incast_pairs_are_those_with_the_first_rank) {
  const Pairs pairs = count_pairs(Pattern::incast, on_nodes({0, 0, 1, 1, 2}));
  EXPECT(pairs.all == 4);
  EXPECT(pairs.between_nodes == 3);
}

TEST(alltoall_pairs_are_all_but_with_oneself) {
  const Pairs pairs = count_pairs(Pattern::alltoall, on_nodes({0, 0, 1, 1, 2}));
  EXPECT(pairs.all == 20);
  EXPECT(pairs.between_nodes == 16);
  EXPECT(count_pairs(Pattern::alltoall, on_nodes({0, 0, 0})).between_nodes == 0);
}

TEST(the_window_shrinks_before_memory_grows) {
  EXPECT(window_for(of(Pattern::incast, kMebibyte), 2) == 16);
  EXPECT(window_for(of(Pattern::incast, kMebibyte), 64) == 4);
  EXPECT(window_for(of(Pattern::incast, kMebibyte), 1024) == 1);
  EXPECT(window_for(of(Pattern::alltoall, kMebibyte), 2) == 1);
}

TEST(what_does_not_go_with_the_ranks_is_refused) {
  EXPECT(complaint(Pattern::incast, 8, 1) == "incast needs at least 2 ranks");
  EXPECT(complaint(Pattern::alltoall, 8, 1) == "alltoall needs at least 2 ranks");
  EXPECT(complaint(Pattern::alltoall, kMebibyte, 1025) ==
         "--message: 1048576 bytes for each of 1025 ranks are more than 1073741824 in one rank");
}
