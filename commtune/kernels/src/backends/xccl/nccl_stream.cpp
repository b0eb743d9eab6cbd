#include "backends/xccl/nccl_stream.h"

#include <chrono>
#include <exception>
#include <thread>

#include "error.h"
#include "ranks/world.h"
#include "timing/clock.h"

namespace commtune {

namespace {

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 14, 0)
constexpr ncclResult_t kInProgress = ncclInProgress;
#else
constexpr ncclResult_t kInProgress = ncclSuccess;
#endif

/// Far longer than any operation that goes well; a rank that has failed is found after twice this.
constexpr std::chrono::seconds kLongWait{2};

/// The library's own words.
std::string words_of(ncclResult_t code) {
  std::string words = ncclGetErrorString(code);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 13, 0)
  const char* const more = ncclGetLastError(nullptr);
  if (more != nullptr && *more != '\0') words.append(" (").append(more).append(")");
#endif
  return words;
}

}  // namespace

void fail_xccl(ncclResult_t code, const char* expression, const char* file, int line) {
  throw Error(std::string(file) + ":" + std::to_string(line) + ": " + expression + ": " +
              words_of(code));
}

NcclStream::NcclStream(const World& world, Waiting waiting) : waiting_(waiting) {
  ncclUniqueId id{};
  if (world.is_first()) COMMTUNE_XCCL(ncclGetUniqueId(&id));
  id = world.from_first(id);
  const Clock clock;
  world.barrier();
  const double began = clock.now();
  COMMTUNE_XCCL(ncclCommInitRank(&communicator_, world.size(), id, world.rank()));
  init_s_ = clock.now() - began;
  world.barrier();
  watch_ = std::make_unique<WaitWatch>(kLongWait, [this] { look_for_failure(); });
}

NcclStream::~NcclStream() {
  watch_.reset();
  if (communicator_ == nullptr) return;
  // After a failure kernels may wait for other ranks for ever: freeing memory would wait with
  // them. A destructor can't report; what was measured is written already.
  if (std::uncaught_exceptions() > 0) {
    static_cast<void>(ncclCommAbort(communicator_));
  } else {
    static_cast<void>(ncclCommDestroy(communicator_));
  }
}

void NcclStream::wait() const {
  if (waiting_ == Waiting::poll) {
    poll();
    return check_communicator();
  }
  watch_->begin();
  const gpuError_t ended = gpuStreamSynchronize(stream_.get());
  watch_->end();
  if (!failure_.empty()) throw Error("communication on the device: " + failure_);
  COMMTUNE_GPU_CALL(ended);
  check_communicator();
}

void NcclStream::poll() const {
  gpuError_t state = gpuStreamQuery(stream_.get());
  const bool was_early = state == gpuErrorNotReady;
  while (state == gpuErrorNotReady) {
    check_communicator();
    std::this_thread::yield();
    state = gpuStreamQuery(stream_.get());
  }
  COMMTUNE_GPU_CALL(state);
  // "Not ready" is no error, but may be kept as the last one: who asks for that next, as after the
  // launch of a kernel, would take it for his.
  if (was_early) static_cast<void>(gpuGetLastError());
}

void NcclStream::check_communicator() const {
  ncclResult_t state = ncclSuccess;
  COMMTUNE_XCCL(ncclCommGetAsyncError(communicator_, &state));
  if (state != ncclSuccess) fail_xccl(state, "communication on the device", __FILE__, __LINE__);
}

/// While the stream is waited for, in another thread. What failed will not be complete any more:
/// only when the communicator is given up does the stream end. That waits for its graphs to be
/// given up first, and who has them waits for the stream.
void NcclStream::look_for_failure() {
  if (communicator_ == nullptr) return;
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &state);
  if (asked != ncclSuccess) state = asked;
  if (state == ncclSuccess || state == kInProgress) return;
  failure_ = words_of(state);
  for (Graph* const graph : graphs_) graph->give_up();
  static_cast<void>(ncclCommAbort(communicator_));
  communicator_ = nullptr;
}

}  // namespace commtune
