#include "error.h"
#include "harness.h"
#include "timing/statistics.h"

using namespace commtune;

TEST(quantiles_are_interpolated_between_neighbours) {
  // Reference: numpy.percentile([1, 2, 4, 8, 16], ...), its default method.
  const std::vector<double> values{1, 2, 4, 8, 16};
  EXPECT(quantile(values, 0.0) == 1);
  EXPECT(quantile(values, 1.0) == 16);
  EXPECT(quantile(values, 0.5) == 4);
  EXPECT(harness::near(quantile(values, 0.05), 1.2));
  EXPECT(harness::near(quantile(values, 0.95), 14.4));
}

TEST(summary_of_known_values_in_any_order) {
  const Summary summary = summarise({16, 1, 8, 2, 4});
  EXPECT(summary.min == 1);
  EXPECT(summary.max == 16);
  EXPECT(summary.median == 4);
  EXPECT(summary.p25 == 2);
  EXPECT(summary.p75 == 8);
  EXPECT(harness::near(summary.mean, 6.2));
  EXPECT(harness::near(summary.stdev, 6.09918027279077));  // statistics.stdev of the same values
}

TEST(a_single_value_has_no_spread) {
  const Summary summary = summarise({3});
  EXPECT(summary.median == 3);
  EXPECT(summary.stdev == 0);
  EXPECT(summary.median_low == 3);
  EXPECT(summary.median_high == 3);
}

TEST(nothing_has_no_statistics) {
  EXPECT(harness::message_of<Error>([] { summarise({}); }) == "no statistics of nothing");
  EXPECT(harness::message_of<Error>([] { median_bounds(0); }) == "no median of nothing");
}

/// Probability that the order statistics at `bounds` enclose the median, by summing the binomial
/// distribution itself.
static double coverage(std::size_t count, MedianBounds bounds) {
  double inside = 0;
  for (std::size_t below = bounds.low + 1; below <= bounds.high; ++below) {
    const auto n = static_cast<double>(count);
    const auto k = static_cast<double>(below);
    inside += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) -
                       n * std::log(2.0));
  }
  return inside;
}

TEST(median_interval_holds_95_percent_and_no_narrower_one_does) {
  for (std::size_t count = 6; count <= 200; ++count) {
    const MedianBounds bounds = median_bounds(count);
    EXPECT(bounds.low + bounds.high == count - 1);
    EXPECT(coverage(count, bounds) >= 0.95);
    EXPECT(coverage(count, {bounds.low + 1, bounds.high - 1}) < 0.95);
  }
}

TEST(median_interval_by_approximation_is_close_to_95_percent) {
  for (const std::size_t count : {201, 500, 1000, 20000}) {
    const double covered = coverage(count, median_bounds(count));
    EXPECT(covered > 0.949);
    EXPECT(covered < 0.97);
  }
}

TEST(too_few_values_give_their_whole_range) {
  for (std::size_t count = 1; count <= 5; ++count) {
    EXPECT(median_bounds(count).low == 0);
    EXPECT(median_bounds(count).high == count - 1);
  }
}
