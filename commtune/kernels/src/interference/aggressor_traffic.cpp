#include "interference/aggressor_traffic.h"

#include <mpi.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "operations/steps.h"

namespace commtune {

namespace {

constexpr int kTrafficTag = 2;

using Look = std::function<void(int complete)>;

/// A round is a window of messages from each sender. The next message of a sender starts as soon
/// as the oldest of its window has arrived, so that the receiver's link never falls silent.
class Incast final : public AggressorTraffic {
 public:
  Incast(const World& world, std::size_t message, int window) {
    const auto slots = static_cast<std::size_t>(window);
    if (world.is_first()) {
      receive_from(world, message, slots);
    } else {
      send_to_first(world, message, slots);
    }
  }
  ~Incast() override {
    for (MPI_Request& request : requests_) static_cast<void>(MPI_Request_free(&request));
  }
  Incast(const Incast&) = delete;
  Incast& operator=(const Incast&) = delete;

  void run(int rounds, const Look& look) override {
    for (int round = 0; round < rounds; ++round) {
      for (MPI_Request& request : requests_) {
        // A request that was not started yet is complete.
        COMMTUNE_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        COMMTUNE_MPI(MPI_Start(&request));
      }
      if (round > 0) look(round);
    }
    COMMTUNE_MPI(
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE));
    look(rounds);
  }

 private:
  void receive_from(const World& world, std::size_t message, std::size_t slots) {
    const std::size_t senders = static_cast<std::size_t>(world.size()) - 1;
    memory_.resize(slots * senders * message);
    std::byte* place = memory_.data();
    for (std::size_t slot = 0; slot < slots; ++slot) {
      for (int sender = 1; sender < world.size(); ++sender, place += message) {
        COMMTUNE_MPI(MPI_Recv_init(place, static_cast<int>(message), MPI_BYTE, sender, kTrafficTag,
                                   world.communicator(),
                                   &requests_.emplace_back(MPI_REQUEST_NULL)));
      }
    }
  }

  void send_to_first(const World& world, std::size_t message, std::size_t slots) {
    memory_.resize(message);
    for (std::size_t slot = 0; slot < slots; ++slot) {
      COMMTUNE_MPI(MPI_Send_init(memory_.data(), static_cast<int>(message), MPI_BYTE, 0,
                                 kTrafficTag, world.communicator(),
                                 &requests_.emplace_back(MPI_REQUEST_NULL)));
    }
  }

  std::vector<std::byte> memory_;
  std::vector<MPI_Request> requests_;
};

/// A round is one MPI_Alltoall.
class AllToAll final : public AggressorTraffic {
 public:
  AllToAll(const World& world, std::size_t message)
      : communicator_(world.communicator()),
        count_(static_cast<int>(message)),
        send_(message * static_cast<std::size_t>(world.size())),
        received_(send_.size()) {}

  void run(int rounds, const Look& look) override {
    for (int round = 1; round <= rounds; ++round) {
      COMMTUNE_MPI(MPI_Alltoall(send_.data(), count_, MPI_BYTE, received_.data(), count_, MPI_BYTE,
                                communicator_));
      look(round);
    }
  }

 private:
  MPI_Comm communicator_;
  int count_;
  std::vector<std::byte> send_;
  std::vector<std::byte> received_;
};

/// By a backend, from and to its memory. A round is a window of actions, all started, then waited
/// for.
class OfBackend final : public AggressorTraffic {
 public:
  explicit OfBackend(std::vector<std::unique_ptr<Action>> actions) : actions_(std::move(actions)) {}

  void run(int rounds, const Look& look) override {
    for (int round = 1; round <= rounds; ++round) {
      for (auto& action : actions_) action->start();
      for (auto& action : actions_) action->wait();
      look(round);
    }
  }

 private:
  std::vector<std::unique_ptr<Action>> actions_;
};

/// The messages of one slot of the window: one from each sender.
Exchange incast_messages(int ranks, std::size_t message, std::size_t slot) {
  Exchange messages;
  std::size_t place = slot * (static_cast<std::size_t>(ranks) - 1) * message;
  for (int sender = 1; sender < ranks; ++sender, place += message) {
    messages.push_back({sender, 0, 0, place, message});
  }
  return messages;
}

std::unique_ptr<AggressorTraffic> incast_of(const World& world, std::size_t message, int window,
                                            Backend& backend) {
  const auto slots = static_cast<std::size_t>(window);
  const std::size_t senders = static_cast<std::size_t>(world.size()) - 1;
  Memory& memory = backend.memory();
  const Buffers buffers{memory.allocate(message),
                        memory.allocate(world.is_first() ? slots * senders * message : 1)};
  std::vector<std::unique_ptr<Action>> actions;
  actions.reserve(slots);
  for (std::size_t slot = 0; slot < slots; ++slot) {
    actions.push_back(backend.exchange(incast_messages(world.size(), message, slot), buffers,
                                       DataType::uint8, Company::beside_others));
  }
  return std::make_unique<OfBackend>(std::move(actions));
}

std::unique_ptr<AggressorTraffic> alltoall_of(const World& world, std::size_t message,
                                              Backend& backend) {
  const std::size_t bytes = message * static_cast<std::size_t>(world.size());
  const Layout layout = lay_out(Operation::alltoall, DataType::uint8, bytes, world.size());
  const Buffers buffers{backend.memory().allocate(bytes), backend.memory().allocate(bytes)};
  std::vector<std::unique_ptr<Action>> actions;
  actions.push_back(backend.collective(layout, buffers, Reduction::sum));
  if (!actions.back()) {
    actions.back() = backend.exchange(own_part_of_alltoall(world.size(), message, world.rank()),
                                      buffers, DataType::uint8, Company::alone);
  }
  return std::make_unique<OfBackend>(std::move(actions));
}

}  // namespace

Traffic operator-(const Traffic& later, const Traffic& earlier) {
  return {later.bytes_moved - earlier.bytes_moved,
          later.bytes_between_nodes - earlier.bytes_between_nodes,
          later.traffic_s - earlier.traffic_s, later.active_s - earlier.active_s};
}

std::unique_ptr<AggressorTraffic> make_traffic(const World& world, const AggressorOptions& options,
                                               int window, Backend* backend) {
  const bool is_alltoall = options.pattern == Pattern::alltoall;
  if (backend != nullptr) {
    return is_alltoall ? alltoall_of(world, options.message, *backend)
                       : incast_of(world, options.message, window, *backend);
  }
  if (is_alltoall) return std::make_unique<AllToAll>(world, options.message);
  return std::make_unique<Incast>(world, options.message, window);
}

}  // namespace commtune
