#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "ranks/world.h"
#include "timing/clock.h"

namespace commtune {

/// A run in which some ranks are aggressors beside those that measure, on every rank; returns the
/// exit status, the same on all.
int run_beside(Options options, const std::vector<std::string>& arguments, const World& world,
               const Clock& clock);

}  // namespace commtune
