#pragma once

#include <cstddef>

#include "cli/options.h"

namespace commtune {

/// What of a rank's buffers is needed, in elements.
struct BufferExtent {
  std::size_t send;
  std::size_t receive;
  /// Both buffers of every rank have so many: operations that go round stay inside them.
  std::size_t common;
};

/// What a rank needs for all operations and sizes of a run. Where one rank sends to, or receives
/// from, many others, its buffer is as many times as large as theirs.
BufferExtent extent_of_buffers(const Options& options, int ranks, int rank);

}  // namespace commtune
