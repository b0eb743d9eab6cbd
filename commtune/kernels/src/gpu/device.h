#pragma once

#include <string>

#include "gpu/driver.h"
#include "gpu/gpu.h"

namespace commtune {

/// Empty where it can't be told.
std::string gpu_uuid(const gpuDeviceProp& properties, const std::string& pci);

/// What tells it from all others of the machine, instances of one GPU (MIG) from each other too.
/// Empty where it can't be told.
std::string gpu_instance(int device);

/// What it executes: "sm_90", "gfx90a:sramecc+:xnack-".
std::string gpu_architecture(const gpuDeviceProp& properties);

/// Which GPU this is on the machine; see driver.h.
std::string pci_of(int device);

/// First line of a file of the kernel that describes a PCI device; empty where there is none.
std::string pci_file(const std::string& pci, const std::string& name);

}  // namespace commtune
