#pragma once

#include <string>
#include <vector>

namespace commtune {

/// Names of what is in a folder, without "." and ".."; nothing where it can't be read.
/// (std::filesystem needs a library of its own before GCC 9.)
std::vector<std::string> names_in(const std::string& folder);

}  // namespace commtune
