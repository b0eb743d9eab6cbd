/// MPI over host memory.

#include "backend.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>

#include "error.h"
#include "world.h"

namespace commtune {

namespace {

constexpr int kTag = 1;
constexpr std::size_t kPage = 4096;

/// Everything that an MPI call needs, decided before the clock runs.
struct Call {
  void* send;
  void* received;
  int count;
  MPI_Datatype type;
  MPI_Op reduction;
  int rank;
  int partner;  ///< of rank 0 and the last rank; MPI_PROC_NULL for the others
};

void ping_pong(const Call& call) {
  const auto send = [&] {
    COMMTUNE_MPI(MPI_Send(call.send, call.count, call.type, call.partner, kTag, MPI_COMM_WORLD));
  };
  const auto receive = [&] {
    COMMTUNE_MPI(MPI_Recv(call.received, call.count, call.type, call.partner, kTag, MPI_COMM_WORLD,
                          MPI_STATUS_IGNORE));
  };
  if (call.rank == 0) {
    send();
    receive();
  } else {
    receive();
    send();
  }
}

void bidirectional(const Call& call) {
  std::array<MPI_Request, 2> requests{};
  COMMTUNE_MPI(MPI_Irecv(call.received, call.count, call.type, call.partner, kTag, MPI_COMM_WORLD,
                         &requests[0]));
  COMMTUNE_MPI(MPI_Isend(call.send, call.count, call.type, call.partner, kTag, MPI_COMM_WORLD,
                         &requests[1]));
  COMMTUNE_MPI(MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE));
}

void allreduce(const Call& call) {
  COMMTUNE_MPI(MPI_Allreduce(call.send, call.received, call.count, call.type, call.reduction,
                             MPI_COMM_WORLD));
}

void alltoall(const Call& call) {
  COMMTUNE_MPI(MPI_Alltoall(call.send, call.count, call.type, call.received, call.count, call.type,
                            MPI_COMM_WORLD));
}

void allgather(const Call& call) {
  COMMTUNE_MPI(MPI_Allgather(call.send, call.count, call.type, call.received, call.count, call.type,
                             MPI_COMM_WORLD));
}

void reduce_scatter(const Call& call) {
  COMMTUNE_MPI(MPI_Reduce_scatter_block(call.send, call.received, call.count, call.type,
                                        call.reduction, MPI_COMM_WORLD));
}

void broadcast(const Call& call) {
  void* data = call.rank == 0 ? call.send : call.received;
  COMMTUNE_MPI(MPI_Bcast(data, call.count, call.type, 0, MPI_COMM_WORLD));
}

using Function = void (*)(const Call&);

Function function_of(Operation operation) {
  switch (operation) {
    case Operation::ping_pong:
      return ping_pong;
    case Operation::bidirectional:
      return bidirectional;
    case Operation::allreduce:
      return allreduce;
    case Operation::alltoall:
      return alltoall;
    case Operation::allgather:
      return allgather;
    case Operation::reduce_scatter:
      return reduce_scatter;
    case Operation::broadcast:
      return broadcast;
  }
  throw Error("an operation without a function");
}

MPI_Datatype mpi_type(DataType type) {
  switch (type) {
    case DataType::float32:
      return MPI_FLOAT;
    case DataType::float64:
      return MPI_DOUBLE;
    case DataType::int32:
      return MPI_INT32_T;
    case DataType::uint8:
      return MPI_UINT8_T;
  }
  throw Error("a data type that MPI doesn't have");
}

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte[], Free>;

/// Page-aligned memory from the heap, as an application would have it: allocator settings are
/// part of what can be tuned.
Memory allocate(std::size_t bytes) {
  const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + kPage - 1) / kPage * kPage;
  Memory memory(static_cast<std::byte*>(std::aligned_alloc(kPage, rounded)));
  if (!memory) throw Error("no memory for a buffer of " + std::to_string(rounded) + " bytes");
  std::memset(memory.get(), 0, rounded);
  return memory;
}

class MpiHostBackend final : public Backend {
 public:
  MpiHostBackend(const World& world, const BackendSpace& space)
      : world_(world),
        reduction_(space.reduction == Reduction::sum ? MPI_SUM : MPI_MAX),
        send_(allocate(space.send_bytes)),
        received_(allocate(space.receive_bytes)) {}

  std::string_view name() const override { return "mpi-host"; }
  std::byte* send() override { return send_.get(); }
  std::byte* received() override { return received_.get(); }

  void prepare(const Layout& layout) override {
    function_ = function_of(layout.operation);
    call_ = {send_.get(),           received_.get(), static_cast<int>(layout.count),
             mpi_type(layout.type), reduction_,      world_.rank(),
             MPI_PROC_NULL};
    if (world_.is_first()) call_.partner = world_.size() - 1;
    if (world_.is_last()) call_.partner = 0;
  }

  void run(int times) override {
    for (int i = 0; i < times; ++i) function_(call_);
  }

  void barrier() override { world_.barrier(); }

 private:
  const World& world_;
  MPI_Op reduction_;
  Memory send_;
  Memory received_;
  Function function_ = nullptr;
  Call call_{};
};

}  // namespace

std::unique_ptr<Backend> make_backend(const World& world, const BackendSpace& space) {
  return std::make_unique<MpiHostBackend>(world, space);
}

}  // namespace commtune
