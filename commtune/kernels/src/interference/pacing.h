#pragma once

namespace commtune {

/// Seconds that an aggressor sends and is silent, in turn; both 0: it never pauses.
struct Bursts {
  double burst_s = 0.0;
  double pause_s = 0.0;
};

/// What an aggressor does at a moment, and for how much longer, seconds.
struct Phase {
  bool sends;
  double left_s;
};

/// A burst comes first. Pure: the time is an argument, so that one rank can decide for all.
/// @param since_s seconds since the aggressor began
Phase phase_at(const Bursts& bursts, double since_s);

/// How many rounds of messages to do before ranks agree again, so that they take about
/// `wanted_s` seconds; at least 1, at most twice as many as before.
/// @param rounds,spent_s the rounds done last and the seconds they took; 0 at the beginning
int next_rounds(int rounds, double spent_s, double wanted_s);

}  // namespace commtune
