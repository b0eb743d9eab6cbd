#pragma once

#include <memory>
#include <set>
#include <string>

#include "backends/backend_options.h"
#include "gpu/gpu.h"
#include "gpu/graph.h"
#include "gpu/stream.h"
#include "timing/wait_watch.h"

#if COMMTUNE_WITH_HIP
#include <rccl/rccl.h>
#else
#include <nccl.h>
#endif

namespace commtune {

class World;

/// Throws Error with place, expression and the library's own words.
[[noreturn]] void fail_xccl(ncclResult_t code, const char* expression, const char* file, int line);

inline void check_xccl(ncclResult_t code, const char* expression, const char* file, int line) {
  if (code != ncclSuccess) fail_xccl(code, expression, file, line);
}

}  // namespace commtune

#define COMMTUNE_XCCL(call) ::commtune::check_xccl((call), #call, __FILE__, __LINE__)

namespace commtune {

/// The stream of all work and the communicator whose work it is.
class NcclStream {
 public:
  /// All ranks make it.
  NcclStream(const World& world, Waiting waiting);
  ~NcclStream();
  NcclStream(const NcclStream&) = delete;
  NcclStream& operator=(const NcclStream&) = delete;

  gpuStream_t stream() const { return stream_.get(); }
  ncclComm_t communicator() const { return communicator_; }
  double init_s() const { return init_s_; }

  /// Graphs of this communicator's work, which have to go before it.
  void keep(Graph& graph) { graphs_.insert(&graph); }
  void forget(Graph& graph) { graphs_.erase(&graph); }

  /// Returns when all that was started is complete. Failures that happen meanwhile, of a network
  /// for instance, are told by the communicator and not by the stream, which may then wait for
  /// ever: a long wait is looked after.
  void wait() const;

 private:
  void poll() const;
  void check_communicator() const;
  void look_for_failure();

  const Waiting waiting_;
  const Stream stream_;
  ncclComm_t communicator_ = nullptr;
  double init_s_ = 0.0;
  std::set<Graph*> graphs_;
  std::string failure_;  ///< written by the watch while it looks only
  std::unique_ptr<WaitWatch> watch_;
};

}  // namespace commtune
