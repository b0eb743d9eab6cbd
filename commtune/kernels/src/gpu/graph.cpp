#include "gpu/graph.h"

namespace commtune {

namespace {

/// Ends a capture however it came to its end: a stream that still captures can't be waited for.
class Capture {
 public:
  explicit Capture(gpuStream_t stream) : stream_(stream) {
    // Only this thread's calls belong to it. Libraries have threads of their own, and allocate.
    COMMTUNE_GPU_CALL(gpuStreamBeginCapture(stream, gpuStreamCaptureModeThreadLocal));
  }
  ~Capture() {
    if (is_ended_) return;
    gpuGraph_t broken = nullptr;
    static_cast<void>(gpuStreamEndCapture(stream_, &broken));
    if (broken != nullptr) static_cast<void>(gpuGraphDestroy(broken));
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  gpuGraph_t end() {
    is_ended_ = true;
    gpuGraph_t graph = nullptr;
    COMMTUNE_GPU_CALL(gpuStreamEndCapture(stream_, &graph));
    return graph;
  }

 private:
  gpuStream_t stream_;
  bool is_ended_ = false;
};

gpuGraph_t capture(gpuStream_t stream, const std::function<void()>& enqueue) {
  Capture open(stream);
  enqueue();
  return open.end();
}

}  // namespace

Graph::Graph(gpuStream_t stream, const std::function<void()>& enqueue)
    : stream_(stream), captured_(capture(stream, enqueue)) {
  gpuGraphExec_t ready = nullptr;
  COMMTUNE_GPU_CALL(gpuGraphInstantiateWithFlags(&ready, captured_.get(), 0));
  ready_.reset(ready);
  // Else the first launch would do it.
  COMMTUNE_GPU_CALL(gpuGraphUpload(ready, stream));
  COMMTUNE_GPU_CALL(gpuStreamSynchronize(stream));
}

void Graph::give_up() {
  ready_.reset();
  captured_.reset();
}

}  // namespace commtune
