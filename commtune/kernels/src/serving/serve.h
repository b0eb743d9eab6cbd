#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ranks/world.h"

namespace commtune {

/// Makes one run with these arguments, the first of which is the program's name; its status.
using MakeRun = std::function<int(const std::vector<std::string>& arguments, const World& world)>;

/// Printed on standard output by rank 0 after each run that ended well.
constexpr const char* kRunEnded = "commtune-bench: run ended";

/// Makes one run after the other, as lines on rank 0's standard input say (see Order), to the end
/// of that input. Each rank forks a process for each run: it starts the library anew, with
/// variables of its own, where the launcher and MPI have started once. A run that fails ends the
/// launch, with its status. All ranks call it.
int serve(const World& world, const MakeRun& make_run);

}  // namespace commtune
