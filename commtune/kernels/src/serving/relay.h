#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "ranks/world.h"

namespace commtune {

/// Memory that a process has in common with the one that it forks. The child, which MPI doesn't
/// know, asks there for what goes to other ranks, and the parent does it.
class Relay {
 public:
  /// Error where there is no memory for it.
  Relay();
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// In the child: what asks the parent. Error where a message is too long for the memory.
  std::unique_ptr<Transport> transport();

  /// In the parent: waits for a question, at most so long, and answers it.
  void serve(Transport& real, std::chrono::milliseconds longest);

 private:
  struct Shared;
  class Asking;

  Shared* shared_;
};

}  // namespace commtune
