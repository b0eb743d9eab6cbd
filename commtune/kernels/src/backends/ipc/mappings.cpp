#include "backends/ipc/mappings.h"

#include <cstring>

#include "gpu/allocation.h"

namespace commtune {

Exposed expose(const std::byte* address) {
  std::byte* const base = allocation_of(address).base;
  Exposed exposed{};
  COMMTUNE_GPU_CALL(gpuIpcGetMemHandle(&exposed.handle, base));
  exposed.offset = static_cast<std::size_t>(address - base);
  return exposed;
}

Mappings::~Mappings() {
  // A destructor can't report, and nothing is measured any more.
  for (const Mapping& mapping : mappings_) static_cast<void>(gpuIpcCloseMemHandle(mapping.base));
}

std::byte* Mappings::map(int rank, const Exposed& exposed) {
  for (const Mapping& mapping : mappings_) {
    if (mapping.rank == rank &&
        std::memcmp(&mapping.handle, &exposed.handle, sizeof exposed.handle) == 0) {
      return static_cast<std::byte*>(mapping.base) + exposed.offset;
    }
  }
  void* base = nullptr;
  COMMTUNE_GPU_CALL(gpuIpcOpenMemHandle(&base, exposed.handle, gpuIpcMemLazyEnablePeerAccess));
  mappings_.push_back({rank, exposed.handle, base});
  return static_cast<std::byte*>(base) + exposed.offset;
}

}  // namespace commtune
