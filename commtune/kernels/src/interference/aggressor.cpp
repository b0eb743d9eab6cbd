#include "interference/aggressor.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace commtune {

namespace {

/// Ranks agree on going on this often: much shorter than the half second that launchers leave
/// between asking a process to end and killing it, much longer than it takes to agree.
constexpr double kStepSeconds = 0.025;
constexpr double kLookSeconds = 0.001;

Traffic traffic_of_round(const AggressorOptions& options, const Placement& placement, int window) {
  const Pairs pairs = count_pairs(options.pattern, placement.ranks());
  const std::uint64_t bytes_a_pair = options.message * static_cast<std::uint64_t>(window);
  return {pairs.all * bytes_a_pair, pairs.between_nodes * bytes_a_pair, 0.0, 0.0};
}

}  // namespace

/// What rank 0 decided for all.
struct Aggressor::Order {
  std::optional<Ending> ending;
  int rounds;      ///< to send
  double pause_s;  ///< if there are none
};

Aggressor::Aggressor(const World& world, const Clock& clock, const AggressorOptions& options,
                     const Placement& placement, std::unique_ptr<Backend> backend)
    : world_(world),
      clock_(clock),
      bursts_(options.bursts),
      window_(window_for(options, world.size())),
      round_(traffic_of_round(options, placement, window_)),
      backend_(std::move(backend)),
      exchange_(make_traffic(world, options, window_, backend_.get())) {}

Ending Aggressor::run(AggressorControl& control) {
  world_.barrier();
  began_s_ = clock_.now();
  for (;;) {
    const Order order = agree(control);
    if (order.ending) return *order.ending;
    obey(order, control);
    traffic_.traffic_s = clock_.now() - began_s_;
  }
}

/// A signal may reach one rank only, and a moment later than another.
Aggressor::Order Aggressor::agree(AggressorControl& control) {
  std::vector<std::uint64_t> signalled{was_signalled() ? 1U : 0U};
  world_.sum_to_first(signalled);
  return world_.from_first(world_.is_first() ? next_order(control, signalled[0] > 0) : Order{});
}

Aggressor::Order Aggressor::next_order(AggressorControl& control, bool signalled) {
  const double now_s = clock_.now();
  if (const auto ending = control.ending(signalled, now_s)) return {ending, 0, 0.0};
  // A burst may be shorter than the time until all have come: the first one begins only then.
  if (!bursts_began_s_) bursts_began_s_ = now_s;
  const Phase phase = phase_at(bursts_, now_s - *bursts_began_s_);
  const double step_s = std::min(phase.left_s, kStepSeconds);
  if (!phase.sends) return {std::nullopt, 0, step_s};
  return {std::nullopt, next_rounds(rounds_, spent_s_, step_s), 0.0};
}

void Aggressor::obey(const Order& order, AggressorControl& control) {
  if (order.rounds > 0) {
    send(order.rounds, control);
  } else {
    rest(order.pause_s, control);
  }
}

void Aggressor::send(int rounds, AggressorControl& control) {
  const double before_s = clock_.now();
  exchange_->run(rounds, [&](int complete) {
    if (world_.is_first()) control.look(so_far(complete, before_s));
  });
  const double active_before_s = traffic_.active_s;
  traffic_ = so_far(rounds, before_s);
  rounds_ = rounds;
  spent_s_ = traffic_.active_s - active_before_s;
}

void Aggressor::rest(double seconds, AggressorControl& control) {
  if (!world_.is_first()) return sleep_for(seconds);
  const double ends_s = clock_.now() + seconds;
  for (;;) {
    control.look(so_far(0, 0.0));
    const double left_s = ends_s - clock_.now();
    if (left_s <= 0) return;
    sleep_for(std::min(left_s, kLookSeconds));
  }
}

/// @param rounds done since `traffic_` was brought up to date
/// @param began_s when the first of them began
Traffic Aggressor::so_far(int rounds, double began_s) const {
  const double now_s = clock_.now();
  Traffic traffic = traffic_;
  traffic.bytes_moved += round_.bytes_moved * static_cast<std::uint64_t>(rounds);
  traffic.bytes_between_nodes += round_.bytes_between_nodes * static_cast<std::uint64_t>(rounds);
  if (rounds > 0) traffic.active_s += now_s - began_s;
  traffic.traffic_s = now_s - began_s_;
  return traffic;
}

}  // namespace commtune
