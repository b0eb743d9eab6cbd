#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace commtune {

/// How two processes of a node agree about copies that one of them makes.
///
/// Of the two ends of a message one moves the data, the *mover*: the sender when it puts, the
/// receiver when it gets. The other one, the *owner*, only has the buffer that the mover reaches
/// through its mapping: the receive buffer of a put, the send buffer of a get.
///
/// All messages from one rank to another that belong to one exchange are one *round* of this pair
/// of ranks. Both ends start the same exchanges in the same order, so each counts rounds by
/// itself, from 1, and the numbers agree. Each flag of a pair is written by one end only;
/// their numbers only grow:
///
///     owner, as it starts round n:             offered = n
///     mover, once it has started round n and sees offered >= n: copies
///     mover, once the copies are complete:     moved = n
///     mover's wait() returns;  owner's wait() returns when it sees moved >= n
///
/// From this follows, without a barrier between rounds:
/// - put: the receiver's wait() returns when its data is complete (moved = n). The data of round
///   n + 1 can't come before the receiver has started it (offered = n + 1), which it does when it
///   has done with the data of round n. The sender's wait() returns when its buffer was read.
/// - get: the receiver copies nothing before the sender has put its data there and started (offered
///   = n). The sender's wait() returns when the receiver has read all of it (moved = n); before
///   that the sender doesn't write into its buffer, as nobody does before wait().
///
/// Flags are stored with release and read with acquire: what one end knew to be complete before it
/// stored is complete for the other one. Copies of a GPU are complete when their stream says so.
struct FlagPair {
  /// Two lines of 64 bytes: the prefetcher fetches pairs.
  static constexpr std::size_t kLine = 128;

  alignas(kLine) std::atomic<std::uint64_t> offered;
  alignas(kLine) std::atomic<std::uint64_t> moved;
};

/// The owner's end of a pair of flags. Several rounds may be under way.
class Owner {
 public:
  explicit Owner(FlagPair& flags) : flags_(&flags) {}

  /// Begins a round; returns its number.
  std::uint64_t offer() {
    flags_->offered.store(++round_, std::memory_order_release);
    return round_;
  }

  bool is_moved(std::uint64_t round) const {
    return flags_->moved.load(std::memory_order_acquire) >= round;
  }

 private:
  FlagPair* flags_;
  std::uint64_t round_ = 0;
};

/// The mover's end of a pair of flags.
class Mover {
 public:
  explicit Mover(FlagPair& flags) : flags_(&flags) {}

  /// Begins a round; returns its number.
  std::uint64_t ask() { return ++round_; }

  /// Whether the owner has offered this round, and the copies of the one before were begun: they
  /// are begun in order, so that those of a later round are never complete earlier.
  bool may_copy(std::uint64_t round) const {
    return copied_ + 1 == round && flags_->offered.load(std::memory_order_acquire) >= round;
  }

  /// The copies of a round were begun.
  void copies(std::uint64_t round) { copied_ = round; }

  /// The copies of this round are complete, and with them those of all before.
  void finish(std::uint64_t round) {
    if (round <= finished_) return;
    finished_ = round;
    flags_->moved.store(round, std::memory_order_release);
  }

 private:
  FlagPair* flags_;
  std::uint64_t round_ = 0;
  std::uint64_t copied_ = 0;
  std::uint64_t finished_ = 0;
};

}  // namespace commtune
