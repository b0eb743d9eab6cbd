#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace commtune {

/// How long a size is measured; the command line's options of the same names.
struct StoppingLimits {
  int warmup = 5;
  int min_samples = 10;
  int max_samples = 200;
  double relative_ci = 0.01;
  double time_cap_s = 0.05;
};

enum class Stop { converged, max_samples, time_cap, hard_cap };

/// The word in the records.
std::string_view word(Stop stop);

/// Past this many time caps a size ends even with fewer samples than the minimum.
constexpr double kHardCapFactor = 20.0;

/// Decides when a size has been measured enough. Pure: times come in as arguments, so that one
/// rank can decide for all.
class StoppingRule {
 public:
  explicit StoppingRule(const StoppingLimits& limits) : limits_(limits) {}

  /// How many warm-up operations to do next: all at once when they are quick, one by one while
  /// they may use up the time; 0 when it is enough.
  /// @param slowest_s the longest operation so far, seconds
  int next_warmup(int done, double spent_s, double slowest_s) const;

  /// Operations to time together so that a sample is well above the clock's resolution and the
  /// skew with which ranks leave a barrier: a power of two.
  static int batch_for(double operation_s, double clock_resolution_s);

  /// Why to stop now, or nothing.
  std::optional<Stop> decide(const std::vector<double>& samples_s, double spent_s) const;

  /// How many samples to take before the next decision; at least 1.
  /// @param sample_wall_s wall seconds that one sample takes, barrier included; above 0
  int next_chunk(int taken, double sample_wall_s) const;

 private:
  bool converged(const std::vector<double>& samples_s) const;

  StoppingLimits limits_;
};

}  // namespace commtune
