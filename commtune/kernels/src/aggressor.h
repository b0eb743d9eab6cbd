#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "clock.h"
#include "ending.h"
#include "pattern.h"
#include "placement.h"
#include "world.h"

namespace commtune {

/// What an aggressor did so far; complete on rank 0 only.
struct Traffic {
  std::uint64_t bytes_moved = 0;  ///< all ranks together, each message once
  std::uint64_t bytes_between_nodes = 0;
  double traffic_s = 0.0;  ///< since it began, pauses included
  double active_s = 0.0;   ///< without pauses
};

/// Messages of one pattern, from and to memory of the host.
class AggressorTraffic;

/// Sends for ever, until it is told to end.
class Aggressor {
 public:
  /// All ranks make it. UsageError where the options don't go with these ranks.
  Aggressor(const World& world, const Clock& clock, const AggressorOptions& options,
            const Placement& placement);
  ~Aggressor();
  Aggressor(const Aggressor&) = delete;
  Aggressor& operator=(const Aggressor&) = delete;

  int window() const { return window_; }

  /// All ranks call it, and all return together, with what rank 0 decided.
  /// @param tell what rank 0 does as soon as messages were moved, and every second after that
  Ending run(const std::function<void(const Traffic&)>& tell);

  const Traffic& traffic() const { return traffic_; }

 private:
  struct Order;

  Order agree();
  Order next_order(bool signalled);
  void obey(const Order& order);
  void send(int rounds);

  const World& world_;
  const Clock& clock_;
  Bursts bursts_;
  EndWatch watch_;
  int window_;
  Traffic round_;  ///< bytes of one round
  Traffic traffic_;
  std::unique_ptr<AggressorTraffic> exchange_;
  double began_s_ = 0.0;
  int rounds_ = 0;        ///< done last
  double spent_s_ = 0.0;  ///< by them
};

}  // namespace commtune
