#pragma once

#include <cstddef>
#include <vector>

namespace commtune {

/// Order statistics and moments of a sample; all in the unit of the values.
struct Summary {
  double min, p5, p25, median, p75, p95, p99, max, mean, stdev;
  double median_low, median_high;  ///< 95 % confidence interval of the median
};

/// Summarises a sample. Percentiles are interpolated linearly between neighbours; the standard
/// deviation is that of the sample (n - 1), 0 for a single value. Error if `values` is empty.
Summary summarise(std::vector<double> values);

/// Quantile `share` (0 to 1) of ascending values.
double quantile(const std::vector<double>& ascending, double share);

/// Positions (from 0) of the order statistics that enclose the median with at least 95 %
/// confidence, whatever the distribution; the whole sample where it is too small for that.
struct MedianBounds {
  std::size_t low, high;
};
MedianBounds median_bounds(std::size_t count);

}  // namespace commtune
