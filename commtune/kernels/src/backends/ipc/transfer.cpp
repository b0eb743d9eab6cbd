#include "backends/ipc/transfer.h"

#include <sched.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "error.h"

namespace commtune {

namespace {

/// Where ranks outnumber cores the one that is waited for may need this one's.
constexpr unsigned kRoundsBeforeYielding = 1024;

int mover_of(const Message& message, IpcDirection direction) {
  return direction == IpcDirection::put ? message.from : message.to;
}

int owner_of(const Message& message, IpcDirection direction) {
  return direction == IpcDirection::put ? message.to : message.from;
}

Copy copy_of(const Message& message, IpcDirection direction, int rank, std::size_t element,
             const Buffers& own, const std::vector<std::byte*>& exposed) {
  std::byte* to = own.received;
  const std::byte* from = own.send;
  if (message.from != message.to) {
    std::byte* const mapped = exposed[static_cast<std::size_t>(owner_of(message, direction))];
    if (message.from == rank) {
      to = mapped;
    } else {
      from = mapped;
    }
  }
  return {to + message.to_offset * element, from + message.from_offset * element,
          message.count * element};
}

}  // namespace

std::vector<int> owners_of(const Exchange& messages, IpcDirection direction, int rank) {
  std::set<int> owners;
  for (const Message& message : messages) {
    if (message.count == 0 || mover_of(message, direction) != rank) continue;
    owners.insert(owner_of(message, direction));
  }
  owners.erase(rank);
  return {owners.begin(), owners.end()};
}

std::vector<int> movers_of(const Exchange& messages, IpcDirection direction, int rank) {
  const bool is_put = direction == IpcDirection::put;
  return owners_of(messages, is_put ? IpcDirection::get : IpcDirection::put, rank);
}

TransferPlan plan_transfer(const Exchange& messages, IpcDirection direction, int rank,
                           std::size_t element, const Buffers& own,
                           const std::vector<std::byte*>& exposed) {
  std::map<int, std::vector<Copy>> copies;
  for (const Message& message : messages) {
    if (message.count == 0 || mover_of(message, direction) != rank) continue;
    copies[owner_of(message, direction)].push_back(
        copy_of(message, direction, rank, element, own, exposed));
  }
  TransferPlan plan;
  plan.owned = movers_of(messages, direction, rank);
  // Not everybody begins with rank 0.
  const auto own_place = copies.lower_bound(rank);
  for (auto next = own_place; next != copies.end(); ++next) {
    plan.moved.push_back({next->first, std::move(next->second)});
  }
  for (auto next = copies.begin(); next != own_place; ++next) {
    plan.moved.push_back({next->first, std::move(next->second)});
  }
  return plan;
}

void TransfersUnderWay::remove(const Transfer& transfer) {
  transfers_.erase(std::remove(transfers_.begin(), transfers_.end(), &transfer), transfers_.end());
}

void TransfersUnderWay::advance() {
  for (Transfer* transfer : transfers_) transfer->advance();
  const auto complete = [](const Transfer* transfer) { return transfer->is_complete(); };
  transfers_.erase(std::remove_if(transfers_.begin(), transfers_.end(), complete),
                   transfers_.end());
}

Transfer::Transfer(TransfersUnderWay& under_way, std::vector<Moving> moving,
                   std::vector<Owned> owned)
    : under_way_(under_way), moving_(std::move(moving)), owned_(std::move(owned)) {
  under_way_.reserve_one();
}

Transfer::~Transfer() { under_way_.remove(*this); }

void Transfer::start() {
  if (pending_ != 0) throw Error("an exchange was started again before it was complete");
  // First of all what other ranks wait for.
  for (Owned& owned : owned_) {
    owned.round = owned.owner->offer();
    owned.is_complete = false;
  }
  for (Moving& moving : moving_) {
    if (moving.mover != nullptr) moving.round = moving.mover->ask();
    moving.state = Moving::State::asked;
  }
  pending_ = owned_.size() + moving_.size();
  if (pending_ == 0) return;
  under_way_.add(*this);
  begin_offered();
}

void Transfer::wait() {
  for (unsigned rounds = 1; !is_complete(); ++rounds) {
    under_way_.advance();
    if (rounds % kRoundsBeforeYielding == 0) sched_yield();
  }
}

void Transfer::begin_offered() {
  for (Moving& moving : moving_) {
    if (moving.state != Moving::State::asked) continue;
    if (moving.mover != nullptr && !moving.mover->may_copy(moving.round)) continue;
    for (const Copy& copy : moving.copies) moving.queue->enqueue(copy);
    if (moving.mover != nullptr) moving.mover->copies(moving.round);
    moving.state = Moving::State::copying;
  }
}

void Transfer::advance() {
  begin_offered();
  for (Moving& moving : moving_) {
    if (moving.state != Moving::State::copying || !moving.queue->is_idle()) continue;
    if (moving.mover != nullptr) moving.mover->finish(moving.round);
    moving.state = Moving::State::complete;
    --pending_;
  }
  for (Owned& owned : owned_) {
    if (owned.is_complete || !owned.owner->is_moved(owned.round)) continue;
    owned.is_complete = true;
    --pending_;
  }
}

}  // namespace commtune
