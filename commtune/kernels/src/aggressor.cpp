#include "aggressor.h"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "error.h"

namespace commtune {

namespace {

constexpr int kTag = 2;

/// Ranks agree on going on this often: much shorter than the half second that launchers leave
/// between asking a process to end and killing it, much longer than it takes to agree.
constexpr double kStepSeconds = 0.025;
constexpr double kTellSeconds = 1.0;

}  // namespace

/// Messages of one pattern, from and to memory of the host.
class AggressorTraffic {
 public:
  virtual ~AggressorTraffic() = default;

  /// Does so many rounds; returns when this rank's part is complete.
  virtual void run(int rounds) = 0;
};

namespace {

/// A round is a window of messages from each sender. The next message of a sender starts as soon
/// as the oldest of its window has arrived, so that the receiver's link never falls silent.
class Incast final : public AggressorTraffic {
 public:
  Incast(const World& world, std::size_t message, int window) {
    const auto slots = static_cast<std::size_t>(window);
    if (world.is_first()) {
      receive_from(world.size(), message, slots);
    } else {
      send_to_first(message, slots);
    }
  }
  ~Incast() override {
    for (MPI_Request& request : requests_) static_cast<void>(MPI_Request_free(&request));
  }
  Incast(const Incast&) = delete;
  Incast& operator=(const Incast&) = delete;

  void run(int rounds) override {
    for (int round = 0; round < rounds; ++round) {
      for (MPI_Request& request : requests_) {
        // A request that was not started yet is complete.
        COMMTUNE_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        COMMTUNE_MPI(MPI_Start(&request));
      }
    }
    COMMTUNE_MPI(
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE));
  }

 private:
  void receive_from(int ranks, std::size_t message, std::size_t slots) {
    const std::size_t senders = static_cast<std::size_t>(ranks) - 1;
    memory_.resize(slots * senders * message);
    std::byte* place = memory_.data();
    for (std::size_t slot = 0; slot < slots; ++slot) {
      for (int sender = 1; sender < ranks; ++sender, place += message) {
        COMMTUNE_MPI(MPI_Recv_init(place, static_cast<int>(message), MPI_BYTE, sender, kTag,
                                   MPI_COMM_WORLD, &requests_.emplace_back(MPI_REQUEST_NULL)));
      }
    }
  }

  void send_to_first(std::size_t message, std::size_t slots) {
    memory_.resize(message);
    for (std::size_t slot = 0; slot < slots; ++slot) {
      COMMTUNE_MPI(MPI_Send_init(memory_.data(), static_cast<int>(message), MPI_BYTE, 0, kTag,
                                 MPI_COMM_WORLD, &requests_.emplace_back(MPI_REQUEST_NULL)));
    }
  }

  std::vector<std::byte> memory_;
  std::vector<MPI_Request> requests_;
};

/// A round is one MPI_Alltoall.
class AllToAll final : public AggressorTraffic {
 public:
  AllToAll(const World& world, std::size_t message)
      : count_(static_cast<int>(message)),
        send_(message * static_cast<std::size_t>(world.size())),
        received_(send_.size()) {}

  void run(int rounds) override {
    for (int round = 0; round < rounds; ++round) {
      COMMTUNE_MPI(MPI_Alltoall(send_.data(), count_, MPI_BYTE, received_.data(), count_, MPI_BYTE,
                                MPI_COMM_WORLD));
    }
  }

 private:
  int count_;
  std::vector<std::byte> send_;
  std::vector<std::byte> received_;
};

std::unique_ptr<AggressorTraffic> make_exchange(const World& world, const AggressorOptions& options,
                                                int window) {
  if (options.pattern == Pattern::alltoall) {
    return std::make_unique<AllToAll>(world, options.message);
  }
  return std::make_unique<Incast>(world, options.message, window);
}

Traffic traffic_of_round(const AggressorOptions& options, const Placement& placement, int window) {
  const Pairs pairs = count_pairs(options.pattern, placement.ranks());
  const std::uint64_t bytes_a_pair = options.message * static_cast<std::uint64_t>(window);
  return {pairs.all * bytes_a_pair, pairs.between_nodes * bytes_a_pair, 0.0, 0.0};
}

}  // namespace

/// What rank 0 decided for all.
struct Aggressor::Order {
  std::optional<Ending> ending;
  int rounds;      ///< to send
  double pause_s;  ///< if there are none
};

Aggressor::Aggressor(const World& world, const Clock& clock, const AggressorOptions& options,
                     const Placement& placement)
    : world_(world),
      clock_(clock),
      bursts_(options.bursts),
      watch_(options.stop_file, options.longest_s),
      window_(window_for(options, world.size())),
      round_(traffic_of_round(options, placement, window_)) {
  if (!world.from_first(watch_.has_folder())) {
    throw UsageError("--stop-file: there is no folder for " + options.stop_file);
  }
  exchange_ = make_exchange(world, options, window_);
}

Aggressor::~Aggressor() = default;

Ending Aggressor::run(const std::function<void(const Traffic&)>& tell) {
  double next_tell_s = 0.0;
  world_.barrier();
  began_s_ = clock_.now();
  for (;;) {
    const Order order = agree();
    if (order.ending) return *order.ending;
    obey(order);
    traffic_.traffic_s = clock_.now() - began_s_;
    if (world_.is_first() && traffic_.traffic_s >= next_tell_s) {
      tell(traffic_);
      next_tell_s = traffic_.traffic_s + kTellSeconds;
    }
  }
}

/// A signal may reach one rank only, and a moment later than another.
Aggressor::Order Aggressor::agree() {
  std::vector<std::uint64_t> signalled{was_signalled() ? 1U : 0U};
  world_.sum_to_first(signalled);
  return world_.from_first(world_.is_first() ? next_order(signalled[0] > 0) : Order{});
}

Aggressor::Order Aggressor::next_order(bool signalled) {
  const double now_s = clock_.now();
  if (const auto ending = watch_.ending(signalled, now_s)) return {ending, 0, 0.0};
  const Phase phase = phase_at(bursts_, now_s - began_s_);
  const double step_s = std::min(phase.left_s, kStepSeconds);
  if (!phase.sends) return {std::nullopt, 0, step_s};
  return {std::nullopt, next_rounds(rounds_, spent_s_, step_s), 0.0};
}

void Aggressor::obey(const Order& order) {
  if (order.rounds > 0) {
    send(order.rounds);
  } else {
    std::this_thread::sleep_for(std::chrono::duration<double>(order.pause_s));
  }
}

void Aggressor::send(int rounds) {
  const double before_s = clock_.now();
  exchange_->run(rounds);
  rounds_ = rounds;
  spent_s_ = clock_.now() - before_s;
  traffic_.active_s += spent_s_;
  traffic_.bytes_moved += round_.bytes_moved * static_cast<std::uint64_t>(rounds);
  traffic_.bytes_between_nodes += round_.bytes_between_nodes * static_cast<std::uint64_t>(rounds);
}

}  // namespace commtune
