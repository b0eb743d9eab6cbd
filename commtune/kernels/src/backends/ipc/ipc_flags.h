#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "backends/ipc/rendezvous.h"
#include "error.h"

namespace commtune {

class Placement;
class World;

/// The flags between all ranks of this rank's node, in memory that they share.
class IpcFlags {
 public:
  /// All ranks call it. UsageError, on all of them, where one can't share memory with its node.
  IpcFlags(const World& world, const Placement& placement);
  ~IpcFlags();
  IpcFlags(const IpcFlags&) = delete;
  IpcFlags& operator=(const IpcFlags&) = delete;

  /// Both are ranks of this node.
  FlagPair& between(int mover, int owner) const;

 private:
  std::optional<UsageError> map(const std::string& name, bool create);

  std::vector<int> local_ranks_;  ///< of all ranks
  std::size_t size_ = 1;          ///< ranks of this node
  FlagPair* flags_ = nullptr;
};

}  // namespace commtune
