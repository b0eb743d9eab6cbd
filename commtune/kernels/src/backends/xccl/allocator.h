#pragma once

#include "gpu/memory.h"

namespace commtune {

/// ncclMemAlloc and ncclMemFree: memory that the library can register with its peers.
DeviceAllocator library_allocator();

/// Whether the library has them: the one this was built with, and the one that is loaded.
/// @param code of the library that is loaded, as ncclGetVersion gives it
bool library_allocates(int code);

}  // namespace commtune
