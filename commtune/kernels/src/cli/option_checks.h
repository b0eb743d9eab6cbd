#pragma once

#include <set>
#include <string>

#include "cli/options.h"

namespace commtune {

/// Names of options that the command line has.
using Given = std::set<std::string>;

/// UsageError where options are missing, or contradict each other, in an operation's run.
void check_operation(const Options& options, const Given& given);

/// Likewise in an aggressor's.
void check_aggressor(const Given& given);

/// Sets how operations are timed where that was left open, or can't be what was asked for.
void settle_timing(Options& options);

}  // namespace commtune
