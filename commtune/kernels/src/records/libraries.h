#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace commtune {

/// Paths of the loaded shared libraries that communication goes through, in load order.
std::vector<std::string> communication_libraries();

/// Whether a library of this path belongs to communication, by its file name.
bool is_communication_library(std::string_view path);

/// What those of the loaded libraries that can tell their version say of it, by their names in the
/// catalogue: libfabric, ucc, ucx. One that is loaded twice, in different versions, is left out:
/// which of them reads a variable is not known.
/// @param paths as communication_libraries() gives them; none of them is loaded by this
std::map<std::string, std::string> library_versions(const std::vector<std::string>& paths);

/// The catalogue's name of a library of this path that can tell its version; empty for others.
std::string_view library_with_version(std::string_view path);

/// A version as libfabric packs it into a number: major in the upper 16 bits, minor in the lower.
std::string unpacked_version(unsigned packed);

}  // namespace commtune
