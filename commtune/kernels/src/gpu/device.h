#pragma once

#include <string>

#include "gpu/gpu.h"

namespace commtune {

/// What the driver says of a GPU; one implementation for each vendor. JSON: whatever can't be
/// told is null.
/// @param pci as the kernel writes it: "0000:1b:00.0"
std::string gpu_state_json(const std::string& pci);
std::string gpu_links_json(const std::string& pci);

/// Empty where it can't be told.
std::string gpu_driver_version();
std::string gpu_uuid(const gpuDeviceProp& properties, const std::string& pci);

/// What it executes: "sm_90", "gfx90a:sramecc+:xnack-".
std::string gpu_architecture(const gpuDeviceProp& properties);

/// Which GPU this is on the machine; see gpu_state_json.
std::string pci_of(int device);

/// First line of a file of the kernel that describes a PCI device; empty where there is none.
std::string pci_file(const std::string& pci, const std::string& name);

}  // namespace commtune
