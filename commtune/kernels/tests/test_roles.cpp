#include "error.h"
#include "harness.h"
#include "ranks/roles.h"

using namespace commtune;

namespace {

using Ranks = std::vector<int>;

Ranks aggressors(const std::string& text, int ranks) {
  const Roles roles = roles_of(parse_aggressor_ranks(text), ranks);
  EXPECT(static_cast<int>(roles.victims.size() + roles.aggressors.size()) == ranks);
  for (const int rank : roles.victims) EXPECT(!roles.is_aggressor(rank));
  for (const int rank : roles.aggressors) EXPECT(roles.is_aggressor(rank));
  return roles.aggressors;
}

std::string complaint(const std::string& text, int ranks = 8) {
  return harness::message_of<UsageError>([&] { roles_of(parse_aggressor_ranks(text), ranks); });
}

}  // namespace

TEST(ranks_are_named_in_three_ways) {
  EXPECT(aggressors("last:2", 5) == (Ranks{3, 4}));
  EXPECT(aggressors("every:2", 5) == (Ranks{1, 3}));
  EXPECT(aggressors("every:2", 4) == (Ranks{1, 3}));
  EXPECT(aggressors("every:3", 7) == (Ranks{2, 5}));
  EXPECT(aggressors("6-7,1,1,3", 8) == (Ranks{1, 3, 6, 7}));
  EXPECT(aggressors("0-6", 8) == (Ranks{0, 1, 2, 3, 4, 5, 6}));
}

TEST(what_names_no_ranks_is_refused) {
  for (const char* text : {"", "all", "last", "last:", "last:1", "last:-2", "every:1", "every:2x",
                           "first:2", "1,", ",1", "1-", "-1", "3-1", "1 2", "1;2", "99999999999"}) {
    EXPECT(harness::contains(complaint(text), "is neither last:N nor every:N"));
  }
}

TEST(somebody_has_to_measure_and_two_to_send) {
  EXPECT(complaint("1,8") == "--aggressors: names rank 8, but there are 8 ranks");
  EXPECT(complaint("3") ==
         "--aggressors: of 8 ranks 1 would be aggressors: 2 are needed at least, and one that "
         "measures");
  EXPECT(harness::contains(complaint("0-7"), "of 8 ranks 8 would be aggressors"));
  EXPECT(harness::contains(complaint("last:2", 2), "of 2 ranks 2 would be aggressors"));
  EXPECT(harness::contains(complaint("last:9", 2), "of 2 ranks 2 would be aggressors"));
  EXPECT(harness::contains(complaint("every:2", 3), "of 3 ranks 1 would be aggressors"));
}
