#include "timing/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "error.h"

namespace commtune {

namespace {

constexpr double kTail = 0.025;           // one side of a 95 % interval
constexpr std::size_t kExactUpTo = 200;   // beyond it the normal approximation is good enough
constexpr double kNormalQuantile = 1.96;  // of 1 - kTail

/// Largest k for which the k-th smallest value (from 1) bounds the median from below:
/// P(B <= k - 1) <= kTail for B binomial with `count` trials of probability 1/2. 0: there is none.
std::size_t lower_rank(std::size_t count) {
  double term = std::pow(0.5, static_cast<double>(count));
  double below = term;
  std::size_t k = 0;
  while (below <= kTail) {
    ++k;
    term *= static_cast<double>(count - k + 1) / static_cast<double>(k);
    below += term;
  }
  return k;
}

double standard_deviation(const std::vector<double>& values, double mean) {
  if (values.size() < 2) return 0.0;
  double squares = 0.0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

}  // namespace

MedianBounds median_bounds(std::size_t count) {
  if (count == 0) throw Error("no median of nothing");
  std::size_t rank = 0;
  if (count <= kExactUpTo) {
    rank = lower_rank(count);
  } else {
    const auto n = static_cast<double>(count);
    rank = static_cast<std::size_t>((n - kNormalQuantile * std::sqrt(n)) / 2);
  }
  const std::size_t low = rank > 0 ? rank - 1 : 0;
  return {low, count - 1 - low};
}

double quantile(const std::vector<double>& ascending, double share) {
  const double position = share * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, ascending.size() - 1);
  const double part = position - static_cast<double>(below);
  return ascending[below] + part * (ascending[above] - ascending[below]);
}

Summary summarise(std::vector<double> values) {
  if (values.empty()) throw Error("no statistics of nothing");
  std::sort(values.begin(), values.end());
  const MedianBounds bounds = median_bounds(values.size());
  Summary summary{};
  summary.min = values.front();
  summary.p5 = quantile(values, 0.05);
  summary.p25 = quantile(values, 0.25);
  summary.median = quantile(values, 0.5);
  summary.p75 = quantile(values, 0.75);
  summary.p95 = quantile(values, 0.95);
  summary.p99 = quantile(values, 0.99);
  summary.max = values.back();
  summary.mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  summary.stdev = standard_deviation(values, summary.mean);
  summary.median_low = values[bounds.low];
  summary.median_high = values[bounds.high];
  return summary;
}

}  // namespace commtune
