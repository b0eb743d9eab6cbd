#pragma once

#include <memory>

#include "memories.h"

namespace commtune {

/// Memory of the GPU that this process has chosen. Every allocation is the runtime's own, so that
/// its address is the one that a handle for other processes opens.
std::unique_ptr<Memory> device_memory();

/// Page-locked memory of the host: what copies to and from the GPU are fastest with.
std::unique_ptr<Memory> pinned_memory();

}  // namespace commtune
