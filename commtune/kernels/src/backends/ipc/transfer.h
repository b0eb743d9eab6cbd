#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/backend.h"
#include "backends/ipc/rendezvous.h"
#include "operations/messages.h"

namespace commtune {

enum class IpcDirection {
  put,  ///< the sender copies into the receiver's memory
  get   ///< the receiver copies out of the sender's
};

struct Copy {
  std::byte* to;
  const std::byte* from;
  std::size_t bytes;
};

/// What a rank does in an exchange; see rendezvous.h for movers and owners.
struct TransferPlan {
  struct Moved {
    int peer;  ///< this rank itself for messages to itself
    std::vector<Copy> copies;
  };
  std::vector<Moved> moved;  ///< this rank copies; ranks that come next after it first
  std::vector<int> owned;    ///< ranks that copy into (out of) this one's memory
};

/// Ranks whose memory this rank reaches for, itself not among them; ranks that reach for its own.
std::vector<int> owners_of(const Exchange& messages, IpcDirection direction, int rank);
std::vector<int> movers_of(const Exchange& messages, IpcDirection direction, int rank);

/// @param element bytes
/// @param exposed by rank: where its receive buffer (put) or send buffer (get) is mapped here;
///   only those of `owners_of` are read
TransferPlan plan_transfer(const Exchange& messages, IpcDirection direction, int rank,
                           std::size_t element, const Buffers& own,
                           const std::vector<std::byte*>& exposed);

/// Copies in the order in which they were enqueued, in the background.
class CopyQueue {
 public:
  virtual ~CopyQueue() = default;
  virtual void enqueue(const Copy& copy) = 0;
  /// Whether all that was enqueued is complete.
  virtual bool is_idle() = 0;
};

class Transfer;

/// Transfers that were started and are not complete. Whoever waits for one of them helps all of
/// them on: otherwise those that are under way together would be done one after the other.
class TransfersUnderWay {
 public:
  /// Room for one more, so that `add` allocates nothing.
  void reserve_one() { transfers_.reserve(++room_); }
  void add(Transfer& transfer) { transfers_.push_back(&transfer); }
  void remove(const Transfer& transfer);
  void advance();

 private:
  std::vector<Transfer*> transfers_;
  std::size_t room_ = 0;
};

/// An exchange by copies.
class Transfer final : public Action {
 public:
  /// This rank copies. A queue serves one pair of flags only, or the messages to oneself.
  struct Moving {
    Mover* mover;  ///< null for messages to oneself
    CopyQueue* queue;
    std::vector<Copy> copies;
    std::uint64_t round = 0;
    enum class State { complete, asked, copying } state = State::complete;
  };

  /// Another rank copies.
  struct Owned {
    Owner* owner;
    std::uint64_t round = 0;
    bool is_complete = true;
  };

  Transfer(TransfersUnderWay& under_way, std::vector<Moving> moving, std::vector<Owned> owned);
  ~Transfer() override;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  /// Error if it is still under way.
  void start() override;
  void wait() override;

  /// Does what can be done now without waiting.
  void advance();

  bool is_complete() const { return pending_ == 0; }

 private:
  void begin_offered();

  TransfersUnderWay& under_way_;
  std::vector<Moving> moving_;
  std::vector<Owned> owned_;
  std::size_t pending_ = 0;
};

}  // namespace commtune
