#pragma once

#include <memory>

#include "backends/backend.h"
#include "backends/backend_options.h"

namespace commtune {

/// NCCL or RCCL: one communicator over all ranks, all work on one stream. All ranks call it, each
/// after its GPU was chosen. Error if a call fails; NCCL refuses two ranks on one GPU.
std::unique_ptr<Backend> make_xccl(const World& world, BackendOptions backend_options);

}  // namespace commtune
