#pragma once

#include <string>

namespace commtune {

/// What the driver says of a GPU; one implementation for each vendor. JSON: whatever can't be
/// told is null.
/// @param pci as the kernel writes it: "0000:1b:00.0"
std::string gpu_state_json(const std::string& pci);
std::string gpu_links_json(const std::string& pci);

/// Empty where it can't be told.
std::string gpu_driver_version();

}  // namespace commtune
