/// The only file for the device's compiler, CUDA's or HIP's.

#if COMMTUNE_WITH_HIP
#include <hip/hip_runtime.h>
#endif

#include <cstdint>

#include "gpu/kernels.h"
#include "operations/data_table.h"

namespace commtune {

namespace {

constexpr unsigned kThreads = 256;
/// Enough to keep every GPU of today busy; each thread goes on with the next elements.
constexpr std::size_t kMostBlocks = 2048;

unsigned blocks_for(std::size_t count) {
  const std::size_t blocks = (count + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

__device__ std::size_t own_begin() {
  return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ std::size_t stride() { return static_cast<std::size_t>(gridDim.x) * blockDim.x; }

template <class T>
__global__ void fill(T* data, std::size_t count, const T* table, std::size_t first) {
  for (std::size_t i = own_begin(); i < count; i += stride()) data[i] = table[entry_of(first + i)];
}

template <class T>
__global__ void count_different(const T* data, std::size_t count, const T* table, std::size_t first,
                                unsigned long long* different) {
  unsigned long long own = 0;
  for (std::size_t i = own_begin(); i < count; i += stride()) {
    own += data[i] == table[entry_of(first + i)] ? 0 : 1;
  }
  if (own != 0) atomicAdd(different, own);
}

/// Only the last error tells whether a launch failed. Libraries leave some of their own there, such
/// as MPICH's question whether an address is a GPU's, which HIP answers by an error for the host's.
void forget_errors() { static_cast<void>(gpuGetLastError()); }

template <class T>
gpuError_t fill_typed(void* data, std::size_t count, const void* table, std::size_t first,
                      gpuStream_t stream) {
  forget_errors();
  fill<T><<<blocks_for(count), kThreads, 0, stream>>>(static_cast<T*>(data), count,
                                                      static_cast<const T*>(table), first);
  return gpuGetLastError();
}

template <class T>
gpuError_t count_typed(const void* data, std::size_t count, const void* table, std::size_t first,
                       unsigned long long* different, gpuStream_t stream) {
  forget_errors();
  count_different<T><<<blocks_for(count), kThreads, 0, stream>>>(
      static_cast<const T*>(data), count, static_cast<const T*>(table), first, different);
  return gpuGetLastError();
}

}  // namespace

gpuError_t enqueue_fill(DataType type, void* data, std::size_t count, const void* table,
                        std::size_t first, gpuStream_t stream) {
  if (count == 0) return gpuSuccess;
  switch (type) {
    case DataType::float32:
      return fill_typed<float>(data, count, table, first, stream);
    case DataType::float64:
      return fill_typed<double>(data, count, table, first, stream);
    case DataType::int32:
      return fill_typed<std::int32_t>(data, count, table, first, stream);
    case DataType::uint8:
      return fill_typed<std::uint8_t>(data, count, table, first, stream);
  }
  return gpuErrorInvalidValue;
}

gpuError_t enqueue_count_different(DataType type, const void* data, std::size_t count,
                                   const void* table, std::size_t first,
                                   unsigned long long* different, gpuStream_t stream) {
  if (count == 0) return gpuSuccess;
  switch (type) {
    case DataType::float32:
      return count_typed<float>(data, count, table, first, different, stream);
    case DataType::float64:
      return count_typed<double>(data, count, table, first, different, stream);
    case DataType::int32:
      return count_typed<std::int32_t>(data, count, table, first, different, stream);
    case DataType::uint8:
      return count_typed<std::uint8_t>(data, count, table, first, different, stream);
  }
  return gpuErrorInvalidValue;
}

}  // namespace commtune
