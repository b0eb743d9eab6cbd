#include "gpu/memory.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "error.h"
#include "gpu/gpu.h"
#include "gpu/kernels.h"
#include "gpu/stream.h"

namespace commtune {

namespace {

constexpr std::size_t kDevicePage = 4096;
/// From this size on the runtimes give every allocation pages of its own.
constexpr std::size_t kOwnPages = std::size_t{1} << 21;

std::size_t rounded(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + kOwnPages - 1) / kOwnPages * kOwnPages;
}

std::byte* page_aligned(void* memory) {
  if (reinterpret_cast<std::uintptr_t>(memory) % kDevicePage != 0) {
    throw Error("the GPU's runtime gave memory that is not aligned to a page");
  }
  return static_cast<std::byte*>(memory);
}

using DevicePointer = std::unique_ptr<void, void (*)(void*)>;

struct FreePinned {
  void operator()(void* memory) const { static_cast<void>(gpuFreeHost(memory)); }
};
using PinnedPointer = std::unique_ptr<void, FreePinned>;

void* allocate_by_runtime(std::size_t bytes) {
  void* memory = nullptr;
  COMMTUNE_GPU_CALL(gpuMalloc(&memory, bytes));
  return memory;
}

void release_by_runtime(void* memory) { static_cast<void>(gpuFree(memory)); }

DevicePointer allocate_device(std::size_t bytes, const DeviceAllocator& allocator) {
  return {allocator.allocate(bytes), allocator.release};
}

class DeviceMemory final : public Memory {
 public:
  explicit DeviceMemory(const DeviceAllocator& allocator)
      : allocator_(allocator),
        table_(allocate_device(kTableSize * sizeof(double), runtime_allocator())),
        different_(allocate_device(sizeof(unsigned long long), runtime_allocator())) {}

  std::string_view name() const override { return "device"; }

  std::byte* allocate(std::size_t bytes) override {
    kept_.push_back(allocate_device(rounded(bytes), allocator_));
    std::byte* const memory = page_aligned(kept_.back().get());
    set(memory, 0, rounded(bytes));
    return memory;
  }

  void copy_in(void* to, const void* from_host, std::size_t bytes) override {
    copy(to, from_host, bytes, gpuMemcpyHostToDevice);
    stream_.synchronize();
  }

  void copy_out(void* to_host, const void* from, std::size_t bytes) override {
    copy(to_host, from, bytes, gpuMemcpyDeviceToHost);
    stream_.synchronize();
  }

  void set(void* to, int byte, std::size_t bytes) override {
    COMMTUNE_GPU_CALL(gpuMemsetAsync(to, byte, bytes, stream_.get()));
    stream_.synchronize();
  }

  void fill(DataType type, void* data, std::size_t count, const void* table,
            std::size_t first) override {
    copy(table_.get(), table, kTableSize * size_of(type), gpuMemcpyHostToDevice);
    COMMTUNE_GPU_CALL(enqueue_fill(type, data, count, table_.get(), first, stream_.get()));
    stream_.synchronize();
  }

  std::uint64_t count_different(DataType type, const void* data, std::size_t count,
                                const void* table, std::size_t first) override {
    unsigned long long different = 0;
    auto* const on_device = static_cast<unsigned long long*>(different_.get());
    copy(table_.get(), table, kTableSize * size_of(type), gpuMemcpyHostToDevice);
    COMMTUNE_GPU_CALL(gpuMemsetAsync(on_device, 0, sizeof different, stream_.get()));
    COMMTUNE_GPU_CALL(
        enqueue_count_different(type, data, count, table_.get(), first, on_device, stream_.get()));
    copy(&different, on_device, sizeof different, gpuMemcpyDeviceToHost);
    stream_.synchronize();
    return different;
  }

 private:
  void copy(void* to, const void* from, std::size_t bytes, decltype(gpuMemcpyDefault) kind) const {
    COMMTUNE_GPU_CALL(gpuMemcpyAsync(to, from, bytes, kind, stream_.get()));
  }

  Stream stream_;  // what is filled or compared concerns no other
  DeviceAllocator allocator_;
  DevicePointer table_;
  DevicePointer different_;
  std::vector<DevicePointer> kept_;
};

/// Where it comes from differs from the heap's memory, what is done with it doesn't.
class PinnedMemory final : public Memory {
 public:
  std::string_view name() const override { return "host"; }

  std::byte* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    COMMTUNE_GPU_CALL(gpuHostAlloc(&memory, rounded(bytes), gpuHostAllocDefault));
    kept_.emplace_back(memory);
    std::memset(memory, 0, rounded(bytes));
    return page_aligned(memory);
  }

  void copy_in(void* to, const void* from_host, std::size_t bytes) override {
    host_->copy_in(to, from_host, bytes);
  }
  void copy_out(void* to_host, const void* from, std::size_t bytes) override {
    host_->copy_out(to_host, from, bytes);
  }
  void set(void* to, int byte, std::size_t bytes) override { host_->set(to, byte, bytes); }
  void fill(DataType type, void* data, std::size_t count, const void* table,
            std::size_t first) override {
    host_->fill(type, data, count, table, first);
  }
  std::uint64_t count_different(DataType type, const void* data, std::size_t count,
                                const void* table, std::size_t first) override {
    return host_->count_different(type, data, count, table, first);
  }

 private:
  std::unique_ptr<Memory> host_ = host_memory();
  std::vector<PinnedPointer> kept_;
};

}  // namespace

DeviceAllocator runtime_allocator() { return {allocate_by_runtime, release_by_runtime}; }

std::unique_ptr<Memory> device_memory(const DeviceAllocator& allocator) {
  return std::make_unique<DeviceMemory>(allocator);
}

std::unique_ptr<Memory> pinned_memory() { return std::make_unique<PinnedMemory>(); }

}  // namespace commtune
