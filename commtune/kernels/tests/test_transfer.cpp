#include <sched.h>

#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <thread>

#include "backends/ipc/transfer.h"
#include "error.h"
#include "harness.h"

using namespace commtune;

namespace {

constexpr std::size_t kBlock = 16;

/// Does its copies only after it was asked so often whether they are done: whoever says too early
/// that data is there, or that a buffer is free, is found out by the data.
class SlowQueue final : public CopyQueue {
 public:
  explicit SlowQueue(int patience) : patience_(patience) {}

  void enqueue(const Copy& copy) override {
    copies_.push_back(copy);
    left_ = patience_;
  }

  bool is_idle() override {
    if (left_-- > 0) return false;
    for (const Copy& copy : copies_) std::memcpy(copy.to, copy.from, copy.bytes);
    copies_.clear();
    return true;
  }

 private:
  int patience_;
  int left_ = 0;
  std::vector<Copy> copies_;
};

struct Memories {
  explicit Memories(int ranks, std::size_t bytes) {
    for (int rank = 0; rank < ranks; ++rank) {
      send.emplace_back(bytes);
      received.emplace_back(bytes);
    }
  }
  std::vector<std::vector<std::byte>> send;
  std::vector<std::vector<std::byte>> received;
};

/// All that the ranks of a node share.
struct Node {
  explicit Node(int ranks_here)
      : ranks(ranks_here), flags(static_cast<std::size_t>(ranks_here * ranks_here)) {}
  FlagPair& between(int mover, int owner) {
    return flags[static_cast<std::size_t>(mover * ranks + owner)];
  }
  int ranks;
  std::vector<FlagPair> flags;
};

/// One rank of it.
class Rank {
 public:
  Rank(Node& node, int rank, IpcDirection direction)
      : node_(node), rank_(rank), direction_(direction) {}

  std::unique_ptr<Transfer> exchange(const Exchange& messages, Memories& memories) {
    std::vector<std::byte*> exposed;
    for (auto& memory : direction_ == IpcDirection::put ? memories.received : memories.send) {
      exposed.push_back(memory.data());
    }
    const auto self = static_cast<std::size_t>(rank_);
    const Buffers own{memories.send[self].data(), memories.received[self].data()};
    exposed[self] = nullptr;
    TransferPlan plan = plan_transfer(messages, direction_, rank_, 1, own, exposed);
    std::vector<Transfer::Moving> moving;
    for (auto& moved : plan.moved) {
      End& end = end_to(moved.peer);
      moving.push_back(
          {moved.peer == rank_ ? nullptr : &end.mover, &end.queue, std::move(moved.copies)});
    }
    std::vector<Transfer::Owned> owned;
    for (const int peer : plan.owned) owned.push_back({&end_to(peer).owner});
    return std::make_unique<Transfer>(under_way_, std::move(moving), std::move(owned));
  }

 private:
  struct End {
    Mover mover;
    Owner owner;
    SlowQueue queue;
  };

  End& end_to(int peer) {
    auto& end = ends_[peer];
    if (!end) {
      end.reset(new End{Mover(node_.between(rank_, peer)), Owner(node_.between(peer, rank_)),
                        SlowQueue(rank_ + peer)});
    }
    return *end;
  }

  Node& node_;
  int rank_;
  IpcDirection direction_;
  std::map<int, std::unique_ptr<End>> ends_;
  TransfersUnderWay under_way_;
};

/// What a rank puts into a block for another one in a round.
std::byte value_of(int from, int to, int round) {
  return static_cast<std::byte>(1 + (from * 31 + to * 7 + round * 3) % 250);
}

Exchange everyone_to_everyone(int ranks) {
  Exchange messages;
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      messages.push_back({from, to, static_cast<std::size_t>(to) * kBlock,
                          static_cast<std::size_t>(from) * kBlock, kBlock});
    }
  }
  return messages;
}

void fill(std::vector<std::byte>& send, int from, int ranks, int round) {
  for (int to = 0; to < ranks; ++to) {
    std::memset(send.data() + static_cast<std::size_t>(to) * kBlock,
                std::to_integer<int>(value_of(from, to, round)), kBlock);
  }
}

/// How many bytes differ from what all ranks have sent; whatever was there is overwritten.
std::size_t count_wrong_and_spoil(std::vector<std::byte>& received, int to, int ranks, int round) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(ranks) * kBlock; ++i) {
    if (received[i] != value_of(static_cast<int>(i / kBlock), to, round)) ++wrong;
    received[i] = std::byte{0xff};
  }
  return wrong;
}

/// Runs each rank as a thread; returns the sum of what they return.
template <class Body>
std::size_t sum_over_ranks(int ranks, const Body& body) {
  std::vector<std::size_t> results(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back(
        [&body, &results, rank] { results[static_cast<std::size_t>(rank)] = body(rank); });
  }
  for (std::thread& thread : threads) thread.join();
  return std::accumulate(results.begin(), results.end(), std::size_t{0});
}

/// Some ranks come later, now this one, now that one.
void dawdle(int rank, int round) {
  for (int i = 0; i < (rank * 5 + round) % 4; ++i) sched_yield();
}

}  // namespace

TEST(rounds_follow_each_other_without_a_barrier) {
  constexpr int kRanks = 3;
  constexpr int kRounds = 300;
  for (const auto direction : {IpcDirection::put, IpcDirection::get}) {
    Node node(kRanks);
    Memories memories(kRanks, kRanks * kBlock);
    const std::size_t wrong = sum_over_ranks(kRanks, [&](int rank) {
      const auto self = static_cast<std::size_t>(rank);
      Rank own(node, rank, direction);
      const auto transfer = own.exchange(everyone_to_everyone(kRanks), memories);
      std::size_t sum = 0;
      for (int round = 0; round < kRounds; ++round) {
        fill(memories.send[self], rank, kRanks, round);
        dawdle(rank, round);
        transfer->start();
        transfer->wait();
        sum += count_wrong_and_spoil(memories.received[self], rank, kRanks, round);
      }
      return sum;
    });
    EXPECT(wrong == 0);
  }
}

TEST(ping_pong_of_two_exchanges_with_a_rank_that_only_watches) {
  constexpr int kRounds = 200;
  for (const auto direction : {IpcDirection::put, IpcDirection::get}) {
    Node node(3);
    Memories memories(3, kBlock);
    const std::size_t wrong = sum_over_ranks(3, [&](int rank) {
      Rank own(node, rank, direction);
      const auto there = own.exchange({{0, 2, 0, 0, kBlock}}, memories);
      const auto back = own.exchange({{2, 0, 0, 0, kBlock}}, memories);
      const auto self = static_cast<std::size_t>(rank);
      std::size_t sum = 0;
      for (int round = 0; round < kRounds; ++round) {
        fill(memories.send[self], rank, 1, round);
        for (Transfer* transfer : {there.get(), back.get()}) {
          transfer->start();
          transfer->wait();
        }
        const std::byte expected = value_of(2 - rank, 0, round);
        if (rank != 1 && memories.received[self][kBlock - 1] != expected) ++sum;
      }
      return sum;
    });
    EXPECT(wrong == 0);
  }
}

TEST(exchanges_under_way_together_over_the_same_doors) {
  constexpr int kRanks = 2;
  constexpr int kRounds = 200;
  for (const auto direction : {IpcDirection::put, IpcDirection::get}) {
    Node node(kRanks);
    Memories first(kRanks, kRanks * kBlock);
    Memories second(kRanks, kRanks * kBlock);
    const std::size_t wrong = sum_over_ranks(kRanks, [&](int rank) {
      const auto self = static_cast<std::size_t>(rank);
      Rank own(node, rank, direction);
      const auto one = own.exchange(everyone_to_everyone(kRanks), first);
      const auto other = own.exchange(everyone_to_everyone(kRanks), second);
      std::size_t sum = 0;
      for (int round = 0; round < kRounds; ++round) {
        fill(first.send[self], rank, kRanks, round);
        fill(second.send[self], rank, kRanks, round + 1);
        one->start();
        dawdle(rank, round);
        other->start();
        // The ranks wait in different orders: each helps on what the other one waits for.
        (rank == 0 ? one : other)->wait();
        (rank == 0 ? other : one)->wait();
        sum += count_wrong_and_spoil(first.received[self], rank, kRanks, round);
        sum += count_wrong_and_spoil(second.received[self], rank, kRanks, round + 1);
      }
      return sum;
    });
    EXPECT(wrong == 0);
  }
}

TEST(nobody_copies_before_the_owner_has_started) {
  for (const auto direction : {IpcDirection::put, IpcDirection::get}) {
    Node node(2);
    Memories memories(2, kBlock);
    Rank ranks[2] = {{node, 0, direction}, {node, 1, direction}};
    const Exchange messages{{0, 1, 0, 0, kBlock}};
    const auto sent = ranks[0].exchange(messages, memories);
    const auto received = ranks[1].exchange(messages, memories);
    Transfer& mover = direction == IpcDirection::put ? *sent : *received;
    Transfer& owner = direction == IpcDirection::put ? *received : *sent;
    for (int round = 0; round < 3; ++round) {
      memories.received[1].assign(kBlock, std::byte{0xff});
      fill(memories.send[0], 0, 1, round);
      mover.start();
      for (int i = 0; i < 10; ++i) mover.advance();
      EXPECT(!mover.is_complete());
      EXPECT(memories.received[1][0] == std::byte{0xff});
      owner.start();
      owner.advance();
      EXPECT(!owner.is_complete());
      mover.advance();  // begins to copy
      owner.advance();
      EXPECT(!mover.is_complete() && !owner.is_complete());
      mover.wait();
      EXPECT(!owner.is_complete());
      owner.wait();
      EXPECT(memories.received[1][0] == value_of(0, 0, round));
    }
  }
}

TEST(a_later_round_is_not_copied_before_an_earlier_one) {
  Node node(2);
  Mover mover(node.between(0, 1));
  Owner owner(node.between(0, 1));
  const std::uint64_t first = mover.ask();
  const std::uint64_t second = mover.ask();
  EXPECT(!mover.may_copy(first));
  EXPECT(owner.offer() == first && owner.offer() == second);
  EXPECT(!mover.may_copy(second));
  EXPECT(mover.may_copy(first));
  mover.copies(first);
  EXPECT(mover.may_copy(second));
  mover.copies(second);
  // Found complete in the other order: the first one is then complete too, and stays so.
  mover.finish(second);
  EXPECT(owner.is_moved(first) && owner.is_moved(second));
  mover.finish(first);
  EXPECT(owner.is_moved(second));
}

TEST(started_again_too_early) {
  Node node(2);
  Memories memories(2, kBlock);
  Rank rank(node, 0, IpcDirection::put);
  const auto transfer = rank.exchange({{0, 1, 0, 0, kBlock}}, memories);
  transfer->start();
  EXPECT(harness::contains(harness::message_of<Error>([&] { transfer->start(); }),
                           "started again before it was complete"));
}

TEST(who_copies_and_whose_memory_is_reached) {
  const Exchange messages{{0, 1, 0, 0, 4}, {1, 2, 0, 0, 4}, {1, 1, 0, 0, 4},
                          {1, 0, 0, 0, 0}, {0, 1, 4, 4, 4}, {1, 3, 0, 0, 1}};
  using Ranks = std::vector<int>;
  EXPECT(owners_of(messages, IpcDirection::put, 1) == (Ranks{2, 3}));
  EXPECT(movers_of(messages, IpcDirection::put, 1) == Ranks{0});
  EXPECT(owners_of(messages, IpcDirection::get, 1) == Ranks{0});
  EXPECT(movers_of(messages, IpcDirection::get, 1) == (Ranks{2, 3}));
}

TEST(ranks_begin_with_the_ones_after_them) {
  std::vector<std::byte> memory(4 * kBlock);
  const Buffers own{memory.data(), memory.data()};
  const std::vector<std::byte*> exposed(4, memory.data());
  const auto plan = plan_transfer(everyone_to_everyone(4), IpcDirection::put, 2, 1, own, exposed);
  EXPECT(plan.moved.size() == 4 && plan.owned == (std::vector<int>{0, 1, 3}));
  EXPECT(plan.moved[0].peer == 2 && plan.moved[1].peer == 3);
  EXPECT(plan.moved[2].peer == 0 && plan.moved[3].peer == 1);
}

TEST(copies_go_by_offsets_in_bytes) {
  std::vector<std::byte> send(64);
  std::vector<std::byte> received(64);
  std::vector<std::byte> theirs(64);
  const Buffers own{send.data(), received.data()};
  const std::vector<std::byte*> exposed{nullptr, theirs.data()};
  const Exchange messages{{0, 1, 1, 2, 3}, {0, 1, 5, 6, 1}, {1, 0, 4, 5, 2}, {0, 0, 1, 3, 2}};
  const auto put = plan_transfer(messages, IpcDirection::put, 0, 8, own, exposed);
  EXPECT(put.moved.size() == 2 && put.moved[0].peer == 0 && put.moved[1].copies.size() == 2);
  const Copy& pushed = put.moved[1].copies[0];
  EXPECT(pushed.to == theirs.data() + 16 && pushed.from == send.data() + 8 && pushed.bytes == 24);
  const Copy& inside = put.moved[0].copies[0];
  EXPECT(inside.to == received.data() + 24 && inside.from == send.data() + 8);
  EXPECT(inside.bytes == 16);
  const auto get = plan_transfer(messages, IpcDirection::get, 0, 8, own, exposed);
  const Copy& pulled = get.moved[1].copies[0];
  EXPECT(pulled.to == received.data() + 40 && pulled.from == theirs.data() + 32);
  EXPECT(pulled.bytes == 16 && get.owned == std::vector<int>{1});
}
