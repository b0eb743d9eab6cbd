#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gpu/gpu.h"

namespace commtune {

/// Memory of a GPU as another process of the node can map it.
struct Exposed {
  gpuIpcMemHandle_t handle;  ///< of the whole allocation
  std::size_t offset;        ///< bytes, of the address in it
};

/// Error where the address is none of the GPU's, or its memory can't be exposed.
Exposed expose(const std::byte* address);

/// The memory of other ranks that is mapped here. Each allocation is mapped once, and stays
/// mapped: that takes long, and some runtimes refuse a second time.
class Mappings {
 public:
  Mappings() = default;
  ~Mappings();
  Mappings(const Mappings&) = delete;
  Mappings& operator=(const Mappings&) = delete;

  /// The address here. Error where it can't be mapped.
  std::byte* map(int rank, const Exposed& exposed);

 private:
  struct Mapping {
    int rank;
    gpuIpcMemHandle_t handle;
    void* base;
  };
  std::vector<Mapping> mappings_;
};

}  // namespace commtune
