#pragma once

#include <cstddef>

namespace commtune {

/// Memory of the GPU that was allocated as one.
struct Allocation {
  std::byte* base;
  std::size_t bytes;
};

/// The allocation that an address lies in. Error where it is none of the GPU's.
Allocation allocation_of(const std::byte* address);

}  // namespace commtune
