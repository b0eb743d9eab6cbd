#pragma once

#include <cstddef>
#include <memory>

#include "backends/memories.h"

namespace commtune {

/// By what memory of the GPU is asked for and given back. `allocate` throws Error where there is
/// none; `release` can't report.
struct DeviceAllocator {
  void* (*allocate)(std::size_t bytes);
  void (*release)(void* memory);
};

/// The runtime's: handles for other processes are made of such memory only.
DeviceAllocator runtime_allocator();

/// Memory of the GPU that this process has chosen. Every buffer is an allocation of its own, so
/// that its address is the one that a handle for other processes opens.
std::unique_ptr<Memory> device_memory(const DeviceAllocator& allocator = runtime_allocator());

/// Page-locked memory of the host: what copies to and from the GPU are fastest with.
std::unique_ptr<Memory> pinned_memory();

}  // namespace commtune
