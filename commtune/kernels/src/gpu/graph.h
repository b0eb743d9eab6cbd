#pragma once

#include <functional>
#include <memory>
#include <type_traits>

#include "gpu/gpu.h"

namespace commtune {

/// What was given to a stream once, kept to be given to it again as a whole.
class Graph {
 public:
  /// @param enqueue gives work to the stream, where it is captured and not begun. Error if it can't
  ///   be captured; what this throws passes through
  Graph(gpuStream_t stream, const std::function<void()>& enqueue);

  /// Enqueues all of it, by one call.
  void launch() const { COMMTUNE_GPU_CALL(gpuGraphLaunch(ready_.get(), stream_)); }

  /// Gives it up, and all that libraries keep for it. What is under way on the device goes on, and
  /// is given up when it is complete.
  void give_up();

 private:
  struct Destroy {
    void operator()(gpuGraph_t graph) const { static_cast<void>(gpuGraphDestroy(graph)); }
    void operator()(gpuGraphExec_t graph) const { static_cast<void>(gpuGraphExecDestroy(graph)); }
  };
  template <class Handle>
  using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy>;

  gpuStream_t stream_;
  Owned<gpuGraph_t> captured_;
  Owned<gpuGraphExec_t> ready_;
};

}  // namespace commtune
