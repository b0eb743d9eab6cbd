#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "ranks/world.h"
#include "timing/clock.h"

namespace commtune {

/// Traffic until it is told to end, on every rank; returns the exit status.
int aggress(const Options& options, const std::vector<std::string>& arguments, const World& world,
            const Clock& clock);

}  // namespace commtune
