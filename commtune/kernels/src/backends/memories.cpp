#include "backends/memories.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "error.h"

namespace commtune {

namespace {

constexpr std::size_t kPage = 4096;

template <class T>
void fill_typed(void* data, std::size_t count, const void* table, std::size_t first) {
  T* values = static_cast<T*>(data);
  const T* entries = static_cast<const T*>(table);
  for (std::size_t i = 0; i < count; ++i) values[i] = entries[entry_of(first + i)];
}

template <class T>
std::uint64_t count_typed(const void* data, std::size_t count, const void* table,
                          std::size_t first) {
  const T* values = static_cast<const T*>(data);
  const T* entries = static_cast<const T*>(table);
  std::uint64_t different = 0;
  for (std::size_t i = 0; i < count; ++i) {
    different += values[i] == entries[entry_of(first + i)] ? 0 : 1;
  }
  return different;
}

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};

/// Page-aligned memory from the heap, as an application would have it: allocator settings are
/// part of what can be tuned.
class HostMemory final : public Memory {
 public:
  std::string_view name() const override { return "host"; }

  std::byte* allocate(std::size_t bytes) override {
    const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + kPage - 1) / kPage * kPage;
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(kPage, rounded));
    if (memory == nullptr) {
      throw Error("no memory for a buffer of " + std::to_string(rounded) + " bytes");
    }
    kept_.emplace_back(memory);
    std::memset(memory, 0, rounded);
    return memory;
  }

  void copy_in(void* to, const void* from_host, std::size_t bytes) override {
    std::memcpy(to, from_host, bytes);
  }
  void copy_out(void* to_host, const void* from, std::size_t bytes) override {
    std::memcpy(to_host, from, bytes);
  }
  void set(void* to, int byte, std::size_t bytes) override { std::memset(to, byte, bytes); }

  void fill(DataType type, void* data, std::size_t count, const void* table,
            std::size_t first) override {
    switch (type) {
      case DataType::float32:
        return fill_typed<float>(data, count, table, first);
      case DataType::float64:
        return fill_typed<double>(data, count, table, first);
      case DataType::int32:
        return fill_typed<std::int32_t>(data, count, table, first);
      case DataType::uint8:
        return fill_typed<std::uint8_t>(data, count, table, first);
    }
    throw Error("a data type that can't be filled in");
  }

  std::uint64_t count_different(DataType type, const void* data, std::size_t count,
                                const void* table, std::size_t first) override {
    switch (type) {
      case DataType::float32:
        return count_typed<float>(data, count, table, first);
      case DataType::float64:
        return count_typed<double>(data, count, table, first);
      case DataType::int32:
        return count_typed<std::int32_t>(data, count, table, first);
      case DataType::uint8:
        return count_typed<std::uint8_t>(data, count, table, first);
    }
    throw Error("a data type that can't be compared");
  }

 private:
  std::vector<std::unique_ptr<std::byte, Free>> kept_;
};

}  // namespace

std::unique_ptr<Memory> host_memory() { return std::make_unique<HostMemory>(); }

}  // namespace commtune
