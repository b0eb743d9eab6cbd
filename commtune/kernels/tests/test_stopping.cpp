#include "harness.h"
#include "timing/stopping.h"

using namespace commtune;

namespace {

StoppingLimits limits() { return {5, 10, 200, 0.01, 0.05}; }

/// Samples that spread by `share` of their median.
std::vector<double> spread(int count, double share) {
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) samples.push_back(1.0 + share * (i % 2 == 0 ? 0.5 : -0.5));
  return samples;
}

}  // namespace

TEST(steady_samples_stop_at_the_minimum) {
  const StoppingRule rule(limits());
  EXPECT(!rule.decide(spread(9, 0.0), 0.001));
  EXPECT(rule.decide(spread(10, 0.0), 0.001) == Stop::converged);
}

TEST(too_few_samples_for_an_interval_never_converge) {
  StoppingLimits few = limits();
  few.min_samples = 1;
  EXPECT(!StoppingRule(few).decide(spread(5, 0.0), 0.001));
  EXPECT(StoppingRule(few).decide(spread(5, 0.0), 0.06) == Stop::time_cap);
  EXPECT(StoppingRule(few).decide(spread(6, 0.0), 0.001) == Stop::converged);
}

TEST(width_of_the_interval_decides) {
  const StoppingRule rule(limits());
  EXPECT(!rule.decide(spread(10, 0.011), 0.001));
  EXPECT(rule.decide(spread(10, 0.009), 0.001) == Stop::converged);
}

TEST(time_cap_holds_once_there_are_enough_samples) {
  const StoppingRule rule(limits());
  EXPECT(!rule.decide(spread(9, 0.5), 0.06));
  EXPECT(!rule.decide(spread(10, 0.5), 0.04));
  EXPECT(rule.decide(spread(10, 0.5), 0.06) == Stop::time_cap);
}

TEST(hard_cap_stops_below_the_minimum_but_not_without_a_sample) {
  const StoppingRule rule(limits());
  EXPECT(rule.decide(spread(1, 0.5), 0.05 * 20) == Stop::hard_cap);
  EXPECT(!rule.decide({}, 100.0));
}

TEST(maximum_of_samples_stops) {
  const StoppingRule rule(limits());
  EXPECT(rule.decide(spread(200, 0.5), 0.001) == Stop::max_samples);
}

TEST(a_maximum_equal_to_the_minimum_is_reached) {
  StoppingLimits same = limits();
  same.min_samples = same.max_samples = 3;
  EXPECT(StoppingRule(same).decide(spread(3, 0.5), 0.001) == Stop::max_samples);
}

TEST(chunks_never_pass_the_maximum_and_are_never_empty) {
  const StoppingRule rule(limits());
  EXPECT(rule.next_chunk(0, 1e-6) == 10);
  EXPECT(rule.next_chunk(7, 1e-6) == 3);
  EXPECT(rule.next_chunk(10, 1e-6) == 10);
  EXPECT(rule.next_chunk(100, 1e-6) == 25);
  EXPECT(rule.next_chunk(195, 1e-6) == 5);
}

TEST(chunks_of_long_samples_are_short) {
  const StoppingRule rule(limits());
  EXPECT(rule.next_chunk(0, 0.001) == 5);  // a tenth of the time cap
  EXPECT(rule.next_chunk(10, 0.002) == 2);
  EXPECT(rule.next_chunk(0, 60.0) == 1);
}

TEST(quick_warm_up_is_done_at_once_and_slow_one_singly_until_half_the_cap) {
  const StoppingRule rule(limits());
  EXPECT(rule.next_warmup(0, 0.0, 1e-6) == 5);
  EXPECT(rule.next_warmup(0, 0.01, 0.01) == 1);
  EXPECT(rule.next_warmup(2, 0.026, 0.01) == 0);
  EXPECT(rule.next_warmup(5, 0.0, 1e-6) == 0);
}

TEST(short_operations_are_timed_in_batches_of_powers_of_two) {
  EXPECT(StoppingRule::batch_for(1.0, 2e-8) == 1);
  EXPECT(StoppingRule::batch_for(10e-6, 2e-8) == 1);
  EXPECT(StoppingRule::batch_for(9e-6, 2e-8) == 2);
  EXPECT(StoppingRule::batch_for(0.25e-6, 2e-8) == 64);
  EXPECT(StoppingRule::batch_for(0.0, 2e-8) == 1024);
}

TEST(a_coarse_clock_asks_for_larger_batches) {
  EXPECT(StoppingRule::batch_for(10e-6, 1e-6) == 32);  // 200 steps of a microsecond
}
