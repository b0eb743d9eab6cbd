#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "timing/clock.h"

namespace commtune {

class World;
class Placement;

/// Times cache-line round trips between rank 0 and the next rank of its node.
///
/// On virtual machines this time changes by a factor of several, within seconds, as the host
/// moves the virtual cores; only runs with the same canary can be compared. It uses a small
/// mapping of its own, so that no setting of the MPI library has an influence on it.
class Canary {
 public:
  Canary(const World& world, const Placement& placement, const Clock& clock);
  ~Canary();
  Canary(const Canary&) = delete;
  Canary& operator=(const Canary&) = delete;

  /// Waits until the two ranks run at the same time, at most 50 ms: processes that have just been
  /// started may share a core until the kernel spreads them. All ranks call it.
  void settle(const World& world);

  /// Takes about 0.2 ms on all ranks, at most 2 ms. Rank 0 gets nanoseconds a round trip, or
  /// nothing where no other rank shares its node or the two didn't run at the same time.
  std::optional<double> measure();

 private:
  struct Lines;

  void share_mapping(const World& world, int partner);
  std::optional<double> time_round_trips(std::uint64_t base);
  void answer(std::uint64_t base);

  const Clock& clock_;
  enum class Role { caller, answerer, bystander } role_ = Role::bystander;
  Lines* lines_ = nullptr;
  std::uint64_t turn_ = 0;
};

}  // namespace commtune
