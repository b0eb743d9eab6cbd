#pragma once

#include <memory>
#include <optional>

#include "backends/backend.h"
#include "interference/aggressor_traffic.h"
#include "interference/termination.h"
#include "interference/traffic_pattern.h"
#include "ranks/placement.h"
#include "ranks/world.h"
#include "timing/clock.h"

namespace commtune {

/// Says to an aggressor when it is to end. Only its first rank asks, and decides for all.
class AggressorControl {
 public:
  virtual ~AggressorControl() = default;

  /// Called after each round and about every millisecond of a pause, so it has to be quick.
  virtual void look(const Traffic& so_far) = 0;

  /// Called some 40 times a second.
  /// @param signalled whether any rank was signalled
  /// @param now_s seconds since the process started
  virtual std::optional<Ending> ending(bool signalled, double now_s) = 0;
};

/// Sends for ever, until it is told to end.
class Aggressor {
 public:
  /// All ranks of `world` make it. UsageError where the options don't go with these ranks.
  /// @param backend null: MPI between memories of the host
  Aggressor(const World& world, const Clock& clock, const AggressorOptions& options,
            const Placement& placement, std::unique_ptr<Backend> backend = nullptr);

  int window() const { return window_; }

  /// All ranks call it, and all return together, with what rank 0 decided; no message is under
  /// way then.
  Ending run(AggressorControl& control);

  const Traffic& traffic() const { return traffic_; }

 private:
  struct Order;

  Order agree(AggressorControl& control);
  Order next_order(AggressorControl& control, bool signalled);
  void obey(const Order& order, AggressorControl& control);
  void send(int rounds, AggressorControl& control);
  void rest(double seconds, AggressorControl& control);
  Traffic so_far(int rounds, double began_s) const;

  const World& world_;
  const Clock& clock_;
  Bursts bursts_;
  int window_;
  Traffic round_;  ///< bytes of one round
  Traffic traffic_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<AggressorTraffic> exchange_;
  std::optional<double> bursts_began_s_;  ///< rank 0 alone knows it
  double began_s_ = 0.0;
  int rounds_ = 0;        ///< done last
  double spent_s_ = 0.0;  ///< by them
};

}  // namespace commtune
