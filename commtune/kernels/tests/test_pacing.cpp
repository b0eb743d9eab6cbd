#include "harness.h"
#include "interference/pacing.h"

using namespace commtune;

TEST(without_bursts_there_is_no_pause) {
  for (const double since_s : {0.0, 0.5, 1e6}) {
    EXPECT(phase_at({}, since_s).sends);
    EXPECT(phase_at({}, since_s).left_s > 1e9);
  }
}

TEST(bursts_and_pauses_take_turns_and_a_burst_is_first) {
  const Bursts bursts{2.0, 3.0};
  const auto sends = [&](double since_s) { return phase_at(bursts, since_s).sends; };
  EXPECT(sends(0.0) && sends(1.9) && sends(5.0) && sends(6.9) && sends(500.0));
  EXPECT(!sends(2.0) && !sends(4.9) && !sends(7.0) && !sends(502.0));
}

TEST(what_is_left_of_a_phase) {
  EXPECT(harness::near(phase_at({2.0, 3.0}, 6.5).left_s, 0.5));
  EXPECT(harness::near(phase_at({2.0, 3.0}, 8.0).left_s, 2.0));
}

TEST(rounds_follow_the_time_that_they_took) {
  EXPECT(next_rounds(0, 0.0, 0.025) == 1);
  EXPECT(next_rounds(100, 0.020, 0.025) == 125);
  EXPECT(next_rounds(100, 0.050, 0.025) == 50);
}

TEST(rounds_at_most_double_and_never_vanish) {
  EXPECT(next_rounds(4, 1e-9, 0.025) == 8);
  EXPECT(next_rounds(4, 0.0, 0.025) == 8);
  EXPECT(next_rounds(1, 100.0, 0.025) == 1);
  EXPECT(next_rounds(4, 0.1, 0.0) == 1);
  EXPECT(next_rounds(1 << 20, 1e-9, 0.025) == 1 << 20);
}
