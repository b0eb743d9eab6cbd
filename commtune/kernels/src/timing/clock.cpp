#include "timing/clock.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

namespace commtune {

namespace {

long long monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<long long>(now.tv_sec) * 1'000'000'000LL + now.tv_nsec;
}

}  // namespace

Clock::Clock() : origin_ns_(monotonic_ns()) {}

double Clock::now() const { return static_cast<double>(monotonic_ns() - origin_ns_) * 1e-9; }

double Clock::resolution_s() {
  long long smallest = std::numeric_limits<long long>::max();
  for (int i = 0; i < 100; ++i) {
    const long long before = monotonic_ns();
    long long after = before;
    while (after == before) after = monotonic_ns();
    smallest = std::min(smallest, after - before);
  }
  return static_cast<double>(smallest) * 1e-9;
}

void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

}  // namespace commtune
