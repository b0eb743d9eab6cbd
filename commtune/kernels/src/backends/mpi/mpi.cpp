#include "backends/mpi/mpi.h"

#include <dlfcn.h>
#include <mpi.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "error.h"
#include "ranks/world.h"

namespace commtune {

namespace {

/// Far from the tags of World.
constexpr int kFirstTag = 100;
constexpr int kTags = 16'000;

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

/// One message of this rank, as MPI wants it.
struct MpiTransfer {
  void* data;
  int count;
  int peer;
};

struct MpiTransfers {
  std::vector<MpiTransfer> sends;
  std::vector<MpiTransfer> receives;
  MPI_Datatype type;
  int tag;
  MPI_Comm communicator;
};

MpiTransfers transfers_of(const Exchange& messages, const Buffers& buffers, DataType type,
                          const World& world, int tag) {
  MpiTransfers transfers{{}, {}, mpi_type(type), tag, world.communicator()};
  const int rank = world.rank();
  const std::size_t element = size_of(type);
  for (const Message& message : messages) {
    const int count = static_cast<int>(message.count);
    if (message.to == rank) {
      transfers.receives.push_back(
          {buffers.received + message.to_offset * element, count, message.from});
    }
    if (message.from == rank) {
      transfers.sends.push_back({buffers.send + message.from_offset * element, count, message.to});
    }
  }
  return transfers;
}

/// Any number of messages, all under way at once.
class NonBlocking final : public Action {
 public:
  explicit NonBlocking(MpiTransfers transfers)
      : transfers_(std::move(transfers)),
        requests_(transfers_.sends.size() + transfers_.receives.size()) {}

  void start() override {
    MPI_Request* request = requests_.data();
    for (const MpiTransfer& transfer : transfers_.receives) {
      COMMTUNE_MPI(MPI_Irecv(transfer.data, transfer.count, transfers_.type, transfer.peer,
                             transfers_.tag, transfers_.communicator, request++));
    }
    for (const MpiTransfer& transfer : transfers_.sends) {
      COMMTUNE_MPI(MPI_Isend(transfer.data, transfer.count, transfers_.type, transfer.peer,
                             transfers_.tag, transfers_.communicator, request++));
    }
  }

  void wait() override {
    COMMTUNE_MPI(
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE));
  }

 private:
  MpiTransfers transfers_;
  std::vector<MPI_Request> requests_;
};

/// A single message of a rank that has nothing else to do meanwhile: as ping-pongs are written.
class Blocking final : public Action {
 public:
  explicit Blocking(const MpiTransfers& transfers)
      : transfer_(transfers.sends.empty() ? transfers.receives.front() : transfers.sends.front()),
        sends_(!transfers.sends.empty()),
        type_(transfers.type),
        tag_(transfers.tag),
        communicator_(transfers.communicator) {}

  void start() override {
    if (sends_) {
      COMMTUNE_MPI(
          MPI_Send(transfer_.data, transfer_.count, type_, transfer_.peer, tag_, communicator_));
    } else {
      COMMTUNE_MPI(MPI_Recv(transfer_.data, transfer_.count, type_, transfer_.peer, tag_,
                            communicator_, MPI_STATUS_IGNORE));
    }
  }
  void wait() override {}

 private:
  MpiTransfer transfer_;
  bool sends_;
  MPI_Datatype type_;
  int tag_;
  MPI_Comm communicator_;
};

/// Everything that a collective call needs, decided before the clock runs.
struct MpiCall {
  void* send;
  void* received;
  int count;
  MPI_Datatype type;
  MPI_Op reduction;
  bool is_root;
  MPI_Comm communicator;
};

void allreduce(const MpiCall& call) {
  COMMTUNE_MPI(MPI_Allreduce(call.send, call.received, call.count, call.type, call.reduction,
                             call.communicator));
}

void reduce(const MpiCall& call) {
  COMMTUNE_MPI(MPI_Reduce(call.send, call.received, call.count, call.type, call.reduction, 0,
                          call.communicator));
}

void alltoall(const MpiCall& call) {
  COMMTUNE_MPI(MPI_Alltoall(call.send, call.count, call.type, call.received, call.count, call.type,
                            call.communicator));
}

void allgather(const MpiCall& call) {
  COMMTUNE_MPI(MPI_Allgather(call.send, call.count, call.type, call.received, call.count, call.type,
                             call.communicator));
}

void reduce_scatter(const MpiCall& call) {
  COMMTUNE_MPI(MPI_Reduce_scatter_block(call.send, call.received, call.count, call.type,
                                        call.reduction, call.communicator));
}

void broadcast(const MpiCall& call) {
  void* data = call.is_root ? call.send : call.received;
  COMMTUNE_MPI(MPI_Bcast(data, call.count, call.type, 0, call.communicator));
}

using MpiFunction = void (*)(const MpiCall&);

MpiFunction mpi_function(Operation operation) {
  switch (operation) {
    case Operation::allreduce:
      return allreduce;
    case Operation::reduce:
      return reduce;
    case Operation::alltoall:
      return alltoall;
    case Operation::allgather:
      return allgather;
    case Operation::reduce_scatter:
      return reduce_scatter;
    case Operation::broadcast:
      return broadcast;
    default:
      return nullptr;
  }
}

class Collective final : public Action {
 public:
  Collective(MpiFunction function, const MpiCall& call) : function_(function), call_(call) {}
  void start() override { function_(call_); }
  void wait() override {}

 private:
  MpiFunction function_;
  MpiCall call_;
};

/// Functions of MPI libraries that say whether they know the memory of such GPUs. Those of Open MPI
/// and MPICH have different names on AMD's.
#if COMMTUNE_WITH_HIP
constexpr std::array kQueries{"MPIX_Query_rocm_support", "MPIX_Query_hip_support"};
#else
constexpr std::array kQueries{"MPIX_Query_cuda_support"};
#endif

/// The function by which the library says that it doesn't know device memory; empty where it says
/// that it does, or nothing. One that reaches it through UCX sends and receives it all the same,
/// but adds and copies in its collectives on the host.
std::string denied_by() {
  using Query = int (*)();
  for (const char* name : kQueries) {
    void* const found = dlsym(RTLD_DEFAULT, name);
    if (found != nullptr) return reinterpret_cast<Query>(found)() == 0 ? name : "";
  }
  return "";
}

class MpiBackend final : public Backend {
 public:
  MpiBackend(std::string_view name, const World& world, std::unique_ptr<Memory> memory)
      : name_(name), world_(world), memory_(std::move(memory)) {}

  std::string_view name() const override { return name_; }
  Memory& memory() override { return *memory_; }

  std::unique_ptr<Action> exchange(const Exchange& messages, const Buffers& buffers, DataType type,
                                   Company company) override {
    // Actions may be under way together: each has a tag of its own, the same on all ranks.
    const int tag = kFirstTag + made_++ % kTags;
    MpiTransfers transfers = transfers_of(messages, buffers, type, world_, tag);
    const std::size_t mine = transfers.sends.size() + transfers.receives.size();
    if (company == Company::alone && mine == 1) return std::make_unique<Blocking>(transfers);
    return std::make_unique<NonBlocking>(std::move(transfers));
  }

  std::unique_ptr<Action> collective(const Layout& layout, const Buffers& buffers,
                                     Reduction reduction) override {
    const MpiFunction function = mpi_function(layout.operation);
    if (function == nullptr) return nullptr;
    if (const std::string query = memory_->name() == "device" ? denied_by() : ""; !query.empty()) {
      if (layout.operation == Operation::alltoall) return nullptr;
      throw UsageError("this MPI says that it is not aware of GPUs (" + query + "): its " +
                       std::string(word(layout.operation)) +
                       " would work on device memory from the host. Use mpi-staged or xccl, or an "
                       "MPI built for these GPUs");
    }
    const MpiCall call{buffers.send,
                       buffers.received,
                       static_cast<int>(layout.count),
                       mpi_type(layout.type),
                       reduction == Reduction::sum ? MPI_SUM : MPI_MAX,
                       world_.is_first(),
                       world_.communicator()};
    return std::make_unique<Collective>(function, call);
  }

 private:
  std::string_view name_;
  const World& world_;
  std::unique_ptr<Memory> memory_;
  int made_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_mpi(std::string_view name, const World& world,
                                  std::unique_ptr<Memory> memory) {
  return std::make_unique<MpiBackend>(name, world, std::move(memory));
}

}  // namespace commtune
