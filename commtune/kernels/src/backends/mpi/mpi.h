#pragma once

#include <memory>
#include <string_view>

#include "backends/backend.h"

namespace commtune {

/// MPI on any memory that the library can read and write: "mpi-host" on the host's, "mpi-device"
/// on the GPU's, if the library is aware of GPUs.
/// @param name has to outlive the backend
std::unique_ptr<Backend> make_mpi(std::string_view name, const World& world,
                                  std::unique_ptr<Memory> memory);

}  // namespace commtune
