#pragma once

namespace commtune {

/// Monotonic seconds since this object was made, which main() does first of all. Counting from
/// there keeps the double's resolution below a picosecond for an hour.
class Clock {
 public:
  Clock();

  double now() const;

  static const char* name() { return "CLOCK_MONOTONIC"; }

  /// Smallest step between two reads that differ, seconds, as measured here and now.
  static double resolution_s();

 private:
  long long origin_ns_;
};

/// Sleeps for so many seconds.
void sleep_for(double seconds);

}  // namespace commtune
