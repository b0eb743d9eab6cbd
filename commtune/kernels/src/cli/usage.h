#pragma once

#include <string_view>

namespace commtune {

/// What --help prints.
std::string_view usage();

}  // namespace commtune
