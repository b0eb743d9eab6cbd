#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "interference/beside.h"
#include "ranks/placement.h"
#include "ranks/world.h"
#include "records/records.h"
#include "timing/clock.h"
#include "timing/measure.h"

namespace commtune {

/// The aggressors beside a run, as those see them that measure.
struct Beside {
  const Roles& roles;
  VictimLink link;
  int window;  ///< messages that an aggressor has under way to one other
};

/// Who takes part in a run.
struct Party {
  const World& world;       ///< those that measure
  const World& all;         ///< they, then the aggressors; the same as `world` where there are none
  const Placement& places;  ///< of `all`
  const Beside* beside;     ///< null: there are no aggressors
  bool binds_late;          ///< see RunFacts
};

/// Ranks whose launcher did not say their places on their nodes choose their GPUs now, and go to
/// the CPUs near them if they are to; `places` then holds those. All ranks of `all` call it.
/// UsageError, on all of them, where some have the same GPU and are not to share.
/// @return whether any went to other CPUs only now, after MPI's start
bool settle_on_gpus(const Options& options, const World& all, Placement& places);

/// What a run is made with: backends and buffers. All ranks of `world` call it, after their GPUs
/// were chosen. UsageError, on all of them, where a backend can't do what is asked for.
/// @param places of `world`, or of more ranks after those
Bench make_bench(const Options& options, const World& world, const Placement& places);

/// Ranks say what records need to know of them. All ranks, aggressors too, call it.
RunFacts facts_of(const Options& options, const std::vector<std::string>& arguments,
                  const World& all);

/// The run, on every rank that measures; returns the exit status.
int run(const Options& options, const std::vector<std::string>& arguments, const Party& party,
        const Bench& bench, const Clock& clock);

}  // namespace commtune
