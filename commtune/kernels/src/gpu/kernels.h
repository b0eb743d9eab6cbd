#pragma once

#include <cstddef>

#include "gpu/gpu.h"
#include "operations/operations.h"

namespace commtune {

/// Enqueues: element i becomes table[entry_of(first + i)].
/// @param data elements of the type, in device memory
/// @param table kTableSize of them, in device memory
[[nodiscard]] gpuError_t enqueue_fill(DataType type, void* data, std::size_t count,
                                      const void* table, std::size_t first, gpuStream_t stream);

/// Enqueues: `different` grows by the number of elements that differ from table[entry_of(first +
/// i)].
/// @param different in device memory
[[nodiscard]] gpuError_t enqueue_count_different(DataType type, const void* data, std::size_t count,
                                                 const void* table, std::size_t first,
                                                 unsigned long long* different, gpuStream_t stream);

}  // namespace commtune
