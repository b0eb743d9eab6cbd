#pragma once

#include <string>

#include "error.h"

namespace commtune {

/// Launchers may end all ranks as soon as one has failed: a rank that has nothing to say waits
/// here until the one that speaks was heard.
void wait_to_be_heard();

/// Says why all ranks end, on one of them. Returns the status.
int exit_of_all(ExitStatus status, const std::string& message, bool speak);

}  // namespace commtune
