#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "backends/ipc/rendezvous.h"

namespace commtune {

class Placement;
class World;

/// The doors between all ranks of this rank's node, in memory that they share.
class Doors {
 public:
  /// All ranks call it. UsageError, on all of them, where one can't share memory with its node.
  Doors(const World& world, const Placement& placement);
  ~Doors();
  Doors(const Doors&) = delete;
  Doors& operator=(const Doors&) = delete;

  /// Both are ranks of this node.
  Door& between(int mover, int owner) const;

 private:
  std::string map(const std::string& name, bool create);

  std::vector<int> local_ranks_;  ///< of all ranks
  std::size_t size_ = 1;          ///< ranks of this node
  Door* doors_ = nullptr;
};

}  // namespace commtune
