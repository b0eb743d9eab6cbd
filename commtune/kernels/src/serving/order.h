#pragma once

#include <string>
#include <vector>

namespace commtune {

/// One run that a shared launch is told to make.
struct Order {
  double limit_s = 0.0;  ///< after so long without an end nobody waits for it any more
  std::vector<std::string> variables;  ///< each NAME=VALUE, on top of the launch's environment
  std::vector<std::string> arguments;  ///< those of a launch of its own, the program's name first
};

/// Reads a line of fields with tabs between: the limit, the number of variables, these, the
/// arguments.
/// UsageError where it is something else.
Order parse_order(const std::string& line);

}  // namespace commtune
