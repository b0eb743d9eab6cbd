#pragma once

#include <string>
#include <vector>

#include "ranks/placement.h"

namespace commtune {

/// What is wrong where ranks have the same GPU, and what to do about it; empty where each has one
/// of its own. Pure.
/// @param gpus what tells each rank's GPU from the others of its machine; an empty one is like no
///     other
std::string shared_gpu(const std::vector<RankPlace>& ranks, const std::vector<std::string>& gpus);

}  // namespace commtune
