#pragma once

#include <memory>

#include "backends/backend.h"

namespace commtune {

/// MPI from host to host, with copies from and to the GPU before and after it ("mpi-staged"):
/// store and forward over page-locked memory, no pipeline. What a program does whose MPI knows
/// nothing of GPUs, and the baseline of De Sensi et al. (SC24). All ranks call it.
std::unique_ptr<Backend> make_staged(const World& world);

}  // namespace commtune
