#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "backends/backend.h"
#include "interference/traffic_pattern.h"
#include "ranks/world.h"

namespace commtune {

/// What an aggressor did so far; complete on rank 0 only.
struct Traffic {
  std::uint64_t bytes_moved = 0;  ///< all ranks together, each message once
  std::uint64_t bytes_between_nodes = 0;
  double traffic_s = 0.0;  ///< since it began, pauses included
  double active_s = 0.0;   ///< without pauses
};

/// What was done from one moment to a later one.
Traffic operator-(const Traffic& later, const Traffic& earlier);

/// Messages of one pattern.
class AggressorTraffic {
 public:
  virtual ~AggressorTraffic() = default;

  /// Does so many rounds; returns when this rank's part is complete.
  /// @param look called after each round with the number of those that are complete
  virtual void run(int rounds, const std::function<void(int complete)>& look) = 0;
};

/// All ranks of `world` make it.
/// @param window messages that a sender has under way to one receiver: a round
/// @param backend what to send with, longer-lived than the traffic; null: MPI between memories of
///   the host
std::unique_ptr<AggressorTraffic> make_traffic(const World& world, const AggressorOptions& options,
                                               int window, Backend* backend);

}  // namespace commtune
