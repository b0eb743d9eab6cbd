#include "interference/pacing.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace commtune {

namespace {

constexpr double kMostRounds = 1 << 20;

}  // namespace

Phase phase_at(const Bursts& bursts, double since_s) {
  const double period_s = bursts.burst_s + bursts.pause_s;
  if (period_s <= 0.0) return {true, std::numeric_limits<double>::infinity()};
  const double into_s = std::fmod(since_s, period_s);
  if (into_s < bursts.burst_s) return {true, bursts.burst_s - into_s};
  return {false, period_s - into_s};
}

int next_rounds(int rounds, double spent_s, double wanted_s) {
  const double most = std::clamp(2.0 * rounds, 1.0, kMostRounds);
  if (spent_s <= 0.0) return static_cast<int>(most);
  return static_cast<int>(std::clamp(rounds * wanted_s / spent_s, 1.0, most));
}

}  // namespace commtune
