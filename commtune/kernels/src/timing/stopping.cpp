#include "timing/stopping.h"

#include <algorithm>
#include <cmath>

#include "error.h"
#include "timing/statistics.h"

namespace commtune {

namespace {

constexpr double kShortestSampleSeconds = 10e-6;
constexpr double kResolutionSteps = 200.0;
constexpr int kLargestBatch = 1024;
constexpr std::size_t kFewestForInterval = 6;  // fewer hold no 95 % interval of the median
constexpr int kChunk = 10;
constexpr double kChunkShare = 0.1;  // of the time cap
constexpr int kGrowth = 4;           // after many samples, decide after each further quarter

}  // namespace

std::string_view word(Stop stop) {
  switch (stop) {
    case Stop::converged:
      return "converged";
    case Stop::max_samples:
      return "max-samples";
    case Stop::time_cap:
      return "time-cap";
    case Stop::hard_cap:
      return "hard-cap";
  }
  throw Error("a stop reason without a word");
}

int StoppingRule::next_warmup(int done, double spent_s, double slowest_s) const {
  const int left = limits_.warmup - done;
  const double allowed_s = limits_.time_cap_s / 2;
  if (left <= 0 || spent_s >= allowed_s) return 0;
  return slowest_s * left < allowed_s - spent_s ? left : 1;
}

int StoppingRule::batch_for(double operation_s, double clock_resolution_s) {
  const double target_s = std::max(kShortestSampleSeconds, kResolutionSteps * clock_resolution_s);
  int batch = 1;
  while (batch < kLargestBatch && batch * operation_s < target_s) batch *= 2;
  return batch;
}

bool StoppingRule::converged(const std::vector<double>& samples_s) const {
  if (samples_s.size() < kFewestForInterval) return false;
  const Summary summary = summarise(samples_s);
  return summary.median_high - summary.median_low < limits_.relative_ci * summary.median;
}

std::optional<Stop> StoppingRule::decide(const std::vector<double>& samples_s,
                                         double spent_s) const {
  const int taken = static_cast<int>(samples_s.size());
  if (taken >= limits_.max_samples) return Stop::max_samples;
  if (taken > 0 && spent_s >= kHardCapFactor * limits_.time_cap_s) return Stop::hard_cap;
  if (taken < limits_.min_samples) return std::nullopt;
  if (converged(samples_s)) return Stop::converged;
  if (spent_s >= limits_.time_cap_s) return Stop::time_cap;
  return std::nullopt;
}

int StoppingRule::next_chunk(int taken, double sample_wall_s) const {
  const int wanted =
      taken < limits_.min_samples ? limits_.min_samples - taken : std::max(kChunk, taken / kGrowth);
  const int allowed = std::min(wanted, limits_.max_samples - taken);
  // Long samples are decided on one by one: the next may take far longer than the last did.
  const double fitting = kChunkShare * limits_.time_cap_s / sample_wall_s;
  return fitting < allowed ? std::max(1, static_cast<int>(fitting)) : std::max(1, allowed);
}

}  // namespace commtune
