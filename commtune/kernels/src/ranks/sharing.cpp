#include "ranks/sharing.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace commtune {

namespace {

constexpr std::size_t kMostNamed = 4;

/// By kernel: containers that pass for machines of their own may have the same GPU.
using Users = std::map<std::pair<int, std::string>, std::vector<std::size_t>>;

std::string named(const std::vector<RankPlace>& places, const std::vector<std::size_t>& ranks) {
  std::string words = "ranks";
  for (std::size_t i = 0; i < std::min(ranks.size(), kMostNamed); ++i) {
    const RankPlace& place = places[ranks[i]];
    words.append(i == 0 ? " " : ", ").append(std::to_string(ranks[i]));
    words.append(" (process ").append(std::to_string(place.pid));
    words.append(" on ").append(place.host).append(")");
  }
  const std::size_t others = ranks.size() - std::min(ranks.size(), kMostNamed);
  return others == 0 ? words : words + " and " + std::to_string(others) + " more";
}

}  // namespace

std::string shared_gpu(const std::vector<RankPlace>& ranks, const std::vector<std::string>& gpus) {
  Users users;
  for (std::size_t rank = 0; rank < gpus.size(); ++rank) {
    if (!gpus[rank].empty()) users[{ranks[rank].kernel, gpus[rank]}].push_back(rank);
  }
  const auto shared = std::find_if(users.begin(), users.end(),
                                   [](const auto& gpu) { return gpu.second.size() > 1; });
  if (shared == users.end()) return "";
  return named(ranks, shared->second) + " use the same GPU, " + shared->first.second +
         ": each rank needs one of its own; let each see all GPUs of its node, or another one "
         "(CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES, srun's --gpus-per-task), and start no more "
         "ranks a node than it has GPUs; --share-gpus yes is for tests";
}

}  // namespace commtune
