#include "timing/canary.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "ranks/placement.h"
#include "ranks/world.h"
#include "timing/statistics.h"

namespace commtune {

namespace {

constexpr double kDurationSeconds = 200e-6;
constexpr double kPatienceSeconds = 2e-3;
constexpr double kSettlingSeconds = 50e-3;
constexpr int kTripsPerGroup = 20;
constexpr std::size_t kFewestGroups = 9;  // an interruption spoils one or two; not their median
constexpr std::uint64_t kTripsPerTurn = std::uint64_t{1} << 32;
constexpr std::uint64_t kLastTrip = kTripsPerTurn - 1;
constexpr std::size_t kLine = 128;  // two lines of 64 bytes: the prefetcher fetches pairs

}  // namespace

/// The two cache lines, one written by each side. Numbers only grow, so that a late answer from
/// an earlier turn is never taken for one of this turn.
struct Canary::Lines {
  alignas(kLine) std::atomic<std::uint64_t> call;
  alignas(kLine) std::atomic<std::uint64_t> answer;
};

Canary::Canary(const World& world, const Placement& placement, const Clock& clock) : clock_(clock) {
  const int partner = placement.neighbour_of_first();
  if (partner == 0) return;
  share_mapping(world, partner);
  if (lines_ == nullptr) return;
  if (world.is_first()) role_ = Role::caller;
  if (world.rank() == partner) role_ = Role::answerer;
}

Canary::~Canary() {
  if (lines_ != nullptr) munmap(lines_, sizeof(Lines));
}

/// Maps the lines on both ranks; where one of them can't, neither has them.
void Canary::share_mapping(const World& world, int partner) {
  const std::string name =
      world.from_first("/commtune-canary-" + std::to_string(getpid()) + "-" +
                       std::to_string(static_cast<long long>(clock_.now() * 1e9)));
  const auto map = [&](int flags) {
    const int file = shm_open(name.c_str(), flags, 0600);
    if (file < 0) return;
    if ((flags & O_CREAT) == 0 || ftruncate(file, sizeof(Lines)) == 0) {
      void* memory = mmap(nullptr, sizeof(Lines), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      if (memory != MAP_FAILED) lines_ = static_cast<Lines*>(memory);
    }
    close(file);
  };
  if (world.is_first()) map(O_RDWR | O_CREAT | O_EXCL);
  const bool created = world.from_first(lines_ != nullptr);
  if (created && world.rank() == partner) map(O_RDWR);
  std::vector<std::uint64_t> mapped{lines_ != nullptr ? std::uint64_t{1} : 0};
  world.sum_to_first(mapped);
  if (world.is_first()) shm_unlink(name.c_str());
  if (world.from_first(mapped[0]) != 2 && lines_ != nullptr) {
    munmap(lines_, sizeof(Lines));
    lines_ = nullptr;
  }
}

void Canary::settle(const World& world) {
  const double ends = clock_.now() + kSettlingSeconds;
  for (bool settled = !world.from_first(role_ == Role::caller); !settled;) {
    const bool answered = measure().has_value();
    settled = world.from_first(answered || clock_.now() > ends);
    // A process that wakes up is put on an idle core, if there is one.
    if (!settled) sleep_for(kDurationSeconds);
  }
}

std::optional<double> Canary::measure() {
  const std::uint64_t base = ++turn_ * kTripsPerTurn;
  switch (role_) {
    case Role::caller:
      return time_round_trips(base);
    case Role::answerer:
      answer(base);
      return std::nullopt;
    case Role::bystander:
      // Spinning here could take the core of one of the two.
      sleep_for(kDurationSeconds);
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> Canary::time_round_trips(std::uint64_t base) {
  const double patience_ends = clock_.now() + kPatienceSeconds;
  std::vector<double> groups_ns;
  std::uint64_t trip = base;
  const auto one_trip = [&] {
    lines_->call.store(++trip, std::memory_order_release);
    for (unsigned spins = 1; lines_->answer.load(std::memory_order_acquire) != trip; ++spins) {
      if (spins % 1024 == 0 && clock_.now() > patience_ends) return false;
    }
    return true;
  };
  bool answered = one_trip();  // the first one waits for the other side to come
  const double ends = clock_.now() + kDurationSeconds;
  double now = clock_.now();
  while (answered && (now < ends || groups_ns.size() < kFewestGroups)) {
    for (int i = 0; i < kTripsPerGroup && answered; ++i) answered = one_trip();
    const double then = now;
    now = clock_.now();
    if (answered) groups_ns.push_back((now - then) * 1e9 / kTripsPerGroup);
  }
  lines_->call.store(base + kLastTrip, std::memory_order_release);
  if (!answered || groups_ns.empty()) return std::nullopt;
  return summarise(groups_ns).median;
}

void Canary::answer(std::uint64_t base) {
  const double patience_ends = clock_.now() + 2 * kPatienceSeconds;
  const std::uint64_t last = base + kLastTrip;
  std::uint64_t answered = base;
  for (unsigned spins = 1;; ++spins) {
    const std::uint64_t call = lines_->call.load(std::memory_order_acquire);
    if (call >= last) return;
    if (call > answered) {
      lines_->answer.store(call, std::memory_order_release);
      answered = call;
      continue;
    }
    if (spins % 1024 == 0 && clock_.now() > patience_ends) return;
  }
}

}  // namespace commtune
