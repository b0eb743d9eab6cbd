/// Runs under mpiexec: ranks are processes here, and nothing but the flags holds them together.

#include <sched.h>

#include <cstdio>

#include "backends/ipc/ipc_flags.h"
#include "error.h"
#include "ranks/placement.h"
#include "ranks/world.h"

using namespace commtune;

namespace {

constexpr int kRounds = 1000;

/// Data goes around: each rank is the mover for the next one, which puts its own number on top of
/// what came by. The data itself travels in the numbers of the rounds.
bool goes_around(const World& world, const IpcFlags& flags) {
  const int next = (world.rank() + 1) % world.size();
  const int previous = (world.rank() + world.size() - 1) % world.size();
  Mover mover(flags.between(world.rank(), next));
  Owner owner(flags.between(previous, world.rank()));
  for (int i = 1; i <= kRounds; ++i) {
    const std::uint64_t offered = owner.offer();
    const std::uint64_t asked = mover.ask();
    while (!mover.may_copy(asked)) sched_yield();
    mover.copies(asked);
    mover.finish(asked);
    while (!owner.is_moved(offered)) sched_yield();
    if (offered != static_cast<std::uint64_t>(i) || asked != offered) return false;
  }
  return true;
}

/// A round of one pair is none of another's.
bool flags_are_apart(const World& world, const IpcFlags& flags) {
  for (int mover = 0; mover < world.size(); ++mover) {
    for (int owner = 0; owner < world.size(); ++owner) {
      const bool is_used = owner == (mover + 1) % world.size();
      const std::uint64_t rounds = is_used ? kRounds : 0;
      if (flags.between(mover, owner).offered.load() != rounds) return false;
      if (flags.between(mover, owner).moved.load() != rounds) return false;
    }
  }
  return true;
}

/// All ranks throw what one of them has met.
bool fail_alike(const World& world) {
  fail_together(world, std::nullopt);
  try {
    made_together(world, [&] { return world.is_last() ? throw Waived("no luck") : true; });
  } catch (const UsageError& error) {
    return error.what() == "rank " + std::to_string(world.size() - 1) + ": no luck" &&
           error.status() == kExitWaived;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const World world(&argc, &argv);
  const Placement placement(world);
  const IpcFlags flags(world, placement);
  const IpcFlags others(world, placement);
  bool holds = goes_around(world, flags);
  world.barrier();
  holds = flags_are_apart(world, flags) && holds;
  holds = others.between(0, world.size() - 1).offered.load() == 0 && holds;
  holds = fail_alike(world) && holds;
  if (!holds) std::fprintf(stderr, "rank %d: flags don't hold\n", world.rank());
  return holds ? 0 : 1;
}
