#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace commtune {

/// Paths of the loaded shared libraries that communication goes through, in load order.
std::vector<std::string> communication_libraries();

/// Whether a library of this path belongs to communication, by its file name.
bool is_communication_library(std::string_view path);

}  // namespace commtune
