#include "backends/ipc/ipc.h"

#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/ipc/ipc_flags.h"
#include "backends/ipc/mappings.h"
#include "error.h"
#include "gpu/gpu.h"
#include "gpu/memory.h"
#include "gpu/stream.h"
#include "ranks/placement.h"
#include "ranks/world.h"

namespace commtune {

namespace {

class StreamQueue final : public CopyQueue {
 public:
  void enqueue(const Copy& copy) override {
    COMMTUNE_GPU_CALL(
        gpuMemcpyAsync(copy.to, copy.from, copy.bytes, gpuMemcpyDeviceToDevice, stream_.get()));
  }

  bool is_idle() override {
    const gpuError_t state = gpuStreamQuery(stream_.get());
    if (state == gpuErrorNotReady) {
      // No error, but kept as the last one: the next one to ask for that would take it for his.
      static_cast<void>(gpuGetLastError());
      return false;
    }
    COMMTUNE_GPU_CALL(state);
    return true;
  }

 private:
  Stream stream_;
};

/// What this rank has for another one of its node; for itself only the queue is used.
struct Neighbour {
  explicit Neighbour(FlagPair& moved_here, FlagPair& owned_here)
      : mover(moved_here), owner(owned_here) {}
  Mover mover;
  Owner owner;
  StreamQueue queue;
};

class IpcBackend final : public Backend {
 public:
  IpcBackend(const World& world, IpcDirection direction)
      : world_(world),
        placement_(world),
        direction_(direction),
        memory_(device_memory()),
        flags_(world, placement_) {}

  ~IpcBackend() override {
    neighbours_.clear();
    mappings_.reset();
    // Memory may be freed when nobody maps it any more. After a failure nobody waits.
    if (std::uncaught_exceptions() > 0) return;
    try {
      world_.barrier();
    } catch (const Error&) {
      return;  // A destructor can't report; what was measured is written already.
    }
  }
  IpcBackend(const IpcBackend&) = delete;
  IpcBackend& operator=(const IpcBackend&) = delete;

  std::string_view name() const override {
    return direction_ == IpcDirection::put ? "ipc-put" : "ipc-get";
  }
  Memory& memory() override { return *memory_; }

  std::unique_ptr<Action> exchange(const Exchange& messages, const Buffers& buffers, DataType type,
                                   Company /*company*/) override {
    check_nodes(messages);
    const std::vector<std::byte*> exposed = map_exposed(messages, buffers);
    TransferPlan plan =
        plan_transfer(messages, direction_, world_.rank(), size_of(type), buffers, exposed);
    std::vector<Transfer::Moving> moving;
    moving.reserve(plan.moved.size());
    for (TransferPlan::Moved& moved : plan.moved) {
      Neighbour& peer = neighbour(moved.peer);
      Mover* const mover = moved.peer == world_.rank() ? nullptr : &peer.mover;
      moving.push_back({mover, &peer.queue, std::move(moved.copies)});
    }
    std::vector<Transfer::Owned> owned;
    owned.reserve(plan.owned.size());
    for (const int peer : plan.owned) owned.push_back({&neighbour(peer).owner});
    return std::make_unique<Transfer>(under_way_, std::move(moving), std::move(owned));
  }

  std::unique_ptr<Action> collective(const Layout& /*layout*/, const Buffers& /*buffers*/,
                                     Reduction /*reduction*/) override {
    return nullptr;
  }

 private:
  /// All ranks find one, or none; see Backend::exchange.
  void check_nodes(const Exchange& messages) const {
    for (const Message& message : messages) {
      const RankPlace& from = placement_.ranks()[static_cast<std::size_t>(message.from)];
      const RankPlace& to = placement_.ranks()[static_cast<std::size_t>(message.to)];
      if (from.node == to.node) continue;
      throw Waived(std::string(name()) + " copies inside a node only, but ranks " +
                   std::to_string(message.from) + " (" + said(from) + ") and " +
                   std::to_string(message.to) + " (" + said(to) + ") are on different ones");
    }
  }

  /// Emulated nodes have the host's name in common.
  static std::string said(const RankPlace& place) {
    return place.host + ", node " + std::to_string(place.node);
  }

  /// Where the memory that this rank reaches for is mapped, by rank.
  std::vector<std::byte*> map_exposed(const Exchange& messages, const Buffers& buffers) {
    std::optional<UsageError> problem;
    Exposed own{};
    const auto note_failure = [&problem](const auto& act) {
      try {
        act();
      } catch (const Error& error) {
        problem.emplace(error.what(), kExitFailure);
      }
    };
    if (!movers_of(messages, direction_, world_.rank()).empty()) {
      note_failure(
          [&] { own = expose(direction_ == IpcDirection::put ? buffers.received : buffers.send); });
    }
    fail_together(world_, problem);
    const std::vector<Exposed> all = of_all_ranks(own);
    std::vector<std::byte*> addresses(all.size(), nullptr);
    note_failure([&] {
      for (const int owner : owners_of(messages, direction_, world_.rank())) {
        const auto index = static_cast<std::size_t>(owner);
        addresses[index] = mappings_->map(owner, all[index]);
      }
    });
    fail_together(world_, problem);
    return addresses;
  }

  std::vector<Exposed> of_all_ranks(const Exposed& own) const {
    std::string bytes(sizeof own, '\0');
    std::memcpy(bytes.data(), &own, sizeof own);
    std::string together;
    for (const std::string& each : world_.gather(bytes)) together += each;
    together = world_.from_first(together);
    std::vector<Exposed> all(static_cast<std::size_t>(world_.size()));
    std::memcpy(all.data(), together.data(), all.size() * sizeof own);
    return all;
  }

  Neighbour& neighbour(int rank) {
    std::unique_ptr<Neighbour>& found = neighbours_[rank];
    if (!found) {
      found = std::make_unique<Neighbour>(flags_.between(world_.rank(), rank),
                                          flags_.between(rank, world_.rank()));
    }
    return *found;
  }

  const World& world_;
  Placement placement_;
  IpcDirection direction_;
  std::unique_ptr<Memory> memory_;
  IpcFlags flags_;
  std::unique_ptr<Mappings> mappings_ = std::make_unique<Mappings>();
  std::map<int, std::unique_ptr<Neighbour>> neighbours_;
  TransfersUnderWay under_way_;
};

}  // namespace

std::unique_ptr<Backend> make_ipc(const World& world, IpcDirection direction) {
  return std::make_unique<IpcBackend>(world, direction);
}

}  // namespace commtune
