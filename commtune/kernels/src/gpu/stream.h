#pragma once

#include "gpu/gpu.h"

namespace commtune {

/// A stream of its own on the current GPU, which doesn't wait for the default one.
class Stream {
 public:
  Stream() { COMMTUNE_GPU_CALL(gpuStreamCreateWithFlags(&stream_, gpuStreamNonBlocking)); }
  // A destructor can't report, and nothing is measured any more.
  ~Stream() { static_cast<void>(gpuStreamDestroy(stream_)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  gpuStream_t get() const { return stream_; }

  /// Returns when all that was enqueued is complete.
  void synchronize() const { COMMTUNE_GPU_CALL(gpuStreamSynchronize(stream_)); }

 private:
  gpuStream_t stream_ = nullptr;
};

}  // namespace commtune
