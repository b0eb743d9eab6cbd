#include "backends/xccl/xccl.h"

#include <string>
#include <utility>
#include <vector>

#include "backends/own_messages.h"
#include "backends/xccl/allocator.h"
#include "backends/xccl/nccl_stream.h"
#include "backends/xccl/version.h"
#include "error.h"
#include "gpu/gpu.h"
#include "gpu/graph.h"
#include "gpu/memory.h"
#include "ranks/world.h"

namespace commtune {

namespace {

#if COMMTUNE_WITH_HIP
constexpr const char* kLibrary = "RCCL";
#else
constexpr const char* kLibrary = "NCCL";
#endif

ncclDataType_t xccl_type(DataType type) {
  switch (type) {
    case DataType::float32:
      return ncclFloat32;
    case DataType::float64:
      return ncclFloat64;
    case DataType::int32:
      return ncclInt32;
    case DataType::uint8:
      return ncclUint8;
  }
  throw Error("a data type that NCCL doesn't have");
}

/// One message of this rank, as the library wants it.
struct NcclTransfer {
  bool sends;
  void* data;
  std::size_t count;
  int peer;
};

class ExchangeAction final : public Action {
 public:
  ExchangeAction(const NcclStream& nccl_stream, std::vector<NcclTransfer> transfers,
                 ncclDataType_t type)
      : nccl_stream_(nccl_stream), transfers_(std::move(transfers)), type_(type) {}

  void start() override {
    if (transfers_.empty()) return;
    COMMTUNE_XCCL(ncclGroupStart());
    for (const NcclTransfer& transfer : transfers_) {
      if (transfer.sends) {
        COMMTUNE_XCCL(ncclSend(transfer.data, transfer.count, type_, transfer.peer,
                               nccl_stream_.communicator(), nccl_stream_.stream()));
      } else {
        COMMTUNE_XCCL(ncclRecv(transfer.data, transfer.count, type_, transfer.peer,
                               nccl_stream_.communicator(), nccl_stream_.stream()));
      }
    }
    COMMTUNE_XCCL(ncclGroupEnd());
  }

  void wait() override { nccl_stream_.wait(); }

 private:
  const NcclStream& nccl_stream_;
  std::vector<NcclTransfer> transfers_;
  ncclDataType_t type_;
};

/// Everything that a collective call needs, decided before the clock runs.
struct NcclCall {
  void* send;
  void* received;
  std::size_t count;
  ncclDataType_t type;
  ncclRedOp_t reduction;
  bool is_root;
  ncclComm_t communicator;
  gpuStream_t stream;
};

void allreduce(const NcclCall& call) {
  COMMTUNE_XCCL(ncclAllReduce(call.send, call.received, call.count, call.type, call.reduction,
                              call.communicator, call.stream));
}

void reduce(const NcclCall& call) {
  COMMTUNE_XCCL(ncclReduce(call.send, call.received, call.count, call.type, call.reduction, 0,
                           call.communicator, call.stream));
}

/// In place at the root, which has its data already: as MPI_Bcast.
void broadcast(const NcclCall& call) {
  void* const data = call.is_root ? call.send : call.received;
  COMMTUNE_XCCL(
      ncclBroadcast(data, data, call.count, call.type, 0, call.communicator, call.stream));
}

void allgather(const NcclCall& call) {
  COMMTUNE_XCCL(ncclAllGather(call.send, call.received, call.count, call.type, call.communicator,
                              call.stream));
}

void reduce_scatter(const NcclCall& call) {
  COMMTUNE_XCCL(ncclReduceScatter(call.send, call.received, call.count, call.type, call.reduction,
                                  call.communicator, call.stream));
}

using NcclFunction = void (*)(const NcclCall&);

/// Null where it is made of messages.
NcclFunction nccl_function(Operation operation) {
  switch (operation) {
    case Operation::allreduce:
      return allreduce;
    case Operation::reduce:
      return reduce;
    case Operation::broadcast:
      return broadcast;
    case Operation::allgather:
      return allgather;
    case Operation::reduce_scatter:
      return reduce_scatter;
    default:
      return nullptr;
  }
}

class CollectiveAction final : public Action {
 public:
  CollectiveAction(const NcclStream& nccl_stream, NcclFunction function, const NcclCall& call)
      : nccl_stream_(nccl_stream), function_(function), call_(call) {}

  void start() override { function_(call_); }
  void wait() override { nccl_stream_.wait(); }

 private:
  const NcclStream& nccl_stream_;
  NcclFunction function_;
  NcclCall call_;
};

/// What was recorded on the stream of all work.
class GraphAction final : public Action {
 public:
  GraphAction(NcclStream& nccl_stream, const std::function<void()>& start_all)
      : nccl_stream_(nccl_stream), graph_(nccl_stream.stream(), start_all) {
    nccl_stream_.keep(graph_);
  }
  ~GraphAction() override { nccl_stream_.forget(graph_); }
  GraphAction(const GraphAction&) = delete;
  GraphAction& operator=(const GraphAction&) = delete;

  void start() override { graph_.launch(); }
  void wait() override { nccl_stream_.wait(); }

 private:
  NcclStream& nccl_stream_;
  Graph graph_;
};

/// Events on the stream of all work.
class StreamTimer final : public DeviceTimer {
 public:
  explicit StreamTimer(gpuStream_t stream) : stream_(stream) {
    COMMTUNE_GPU_CALL(gpuEventCreate(&begin_));
    COMMTUNE_GPU_CALL(gpuEventCreate(&end_));
  }
  ~StreamTimer() override {
    static_cast<void>(gpuEventDestroy(begin_));
    static_cast<void>(gpuEventDestroy(end_));
  }
  StreamTimer(const StreamTimer&) = delete;
  StreamTimer& operator=(const StreamTimer&) = delete;

  void begin() override { COMMTUNE_GPU_CALL(gpuEventRecord(begin_, stream_)); }
  void end() override { COMMTUNE_GPU_CALL(gpuEventRecord(end_, stream_)); }

  double elapsed_s() override {
    COMMTUNE_GPU_CALL(gpuEventSynchronize(end_));
    float milliseconds = 0;
    COMMTUNE_GPU_CALL(gpuEventElapsedTime(&milliseconds, begin_, end_));
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  gpuStream_t stream_;
  gpuEvent_t begin_ = nullptr;
  gpuEvent_t end_ = nullptr;
};

/// Of the library that is loaded, which may not be the header's.
int library_code() {
  int code = 0;
  COMMTUNE_XCCL(ncclGetVersion(&code));
  return code;
}

/// NCCL 2.9, the first whose calls can be captured.
constexpr int kFirstThatRecords = 20'900;

class XcclBackend final : public Backend {
 public:
  XcclBackend(const World& world, BackendOptions backend_options)
      : world_(world),
        library_code_(library_code()),
        library_(std::string(kLibrary) + " " + nccl_version(library_code_)),
        memory_(device_memory(backend_options.allocator == Allocator::library
                                  ? library_allocator()
                                  : runtime_allocator())),
        nccl_stream_(world, backend_options.waiting),
        timer_(nccl_stream_.stream()) {}

  std::string_view name() const override { return "xccl"; }
  Memory& memory() override { return *memory_; }
  bool enqueues() const override { return true; }
  double init_s() const override { return nccl_stream_.init_s(); }
  std::string_view library() const override { return library_; }
  DeviceTimer* device_timer() override { return &timer_; }
  bool can_record() const override { return library_code_ >= kFirstThatRecords; }
  bool can_allocate() const override { return library_allocates(library_code_); }

  std::unique_ptr<Action> record(const std::function<void()>& start_all) override {
    return std::make_unique<GraphAction>(nccl_stream_, start_all);
  }

  std::unique_ptr<Action> exchange(const Exchange& messages, const Buffers& buffers, DataType type,
                                   Company /*company*/) override {
    const std::size_t element = size_of(type);
    std::vector<NcclTransfer> transfers;
    for (const OwnMessage& own : own_messages(messages, world_.rank())) {
      std::byte* const buffer = own.sends ? buffers.send : buffers.received;
      transfers.push_back({own.sends, buffer + own.offset * element, own.count, own.peer});
    }
    return std::make_unique<ExchangeAction>(nccl_stream_, std::move(transfers), xccl_type(type));
  }

  std::unique_ptr<Action> collective(const Layout& layout, const Buffers& buffers,
                                     Reduction reduction) override {
    const NcclFunction function = nccl_function(layout.operation);
    if (function == nullptr) return nullptr;
    const NcclCall call{buffers.send,
                        buffers.received,
                        layout.count,
                        xccl_type(layout.type),
                        reduction == Reduction::sum ? ncclSum : ncclMax,
                        world_.is_first(),
                        nccl_stream_.communicator(),
                        nccl_stream_.stream()};
    return std::make_unique<CollectiveAction>(nccl_stream_, function, call);
  }

 private:
  const World& world_;
  int library_code_;
  std::string library_;
  // What is below uses it, and goes before it.
  std::unique_ptr<Memory> memory_;
  NcclStream nccl_stream_;
  StreamTimer timer_;
};

}  // namespace

std::unique_ptr<Backend> make_xccl(const World& world, BackendOptions backend_options) {
  return std::make_unique<XcclBackend>(world, backend_options);
}

}  // namespace commtune
