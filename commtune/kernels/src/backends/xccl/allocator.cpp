#include "backends/xccl/allocator.h"

#include "backends/xccl/nccl_stream.h"
#include "error.h"

namespace commtune {

namespace {

/// NCCL 2.19, the first that allocates.
constexpr int kFirstThatAllocates = 21'900;

#if NCCL_VERSION_CODE >= 21900

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  COMMTUNE_XCCL(ncclMemAlloc(&memory, bytes));
  return memory;
}

void release(void* memory) { static_cast<void>(ncclMemFree(memory)); }

#else

void* allocate(std::size_t /*bytes*/) { throw Error("this library allocates nothing"); }

void release(void* /*memory*/) {}

#endif

}  // namespace

DeviceAllocator library_allocator() { return {allocate, release}; }

bool library_allocates(int code) {
  return NCCL_VERSION_CODE >= kFirstThatAllocates && code >= kFirstThatAllocates;
}

}  // namespace commtune
