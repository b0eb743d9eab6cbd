#pragma once

namespace commtune {

/// How a rank waits for its stream. `stream`: in one call of the GPU's runtime. `poll`: it asks the
/// stream and the library in turn until the work is complete, as nccl-tests does; so a failure of
/// the network is seen at once.
enum class Waiting { stream, poll };

/// What buffers are allocated with: the GPU's runtime, or the communication library itself, which
/// can register what it has allocated.
enum class Allocator { runtime, library };

/// What only some backends have a choice of; the others go their own way.
struct BackendOptions {
  Waiting waiting = Waiting::stream;
  Allocator allocator = Allocator::runtime;
};

}  // namespace commtune
