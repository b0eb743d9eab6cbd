#include "timing/wait_watch.h"

#include <utility>

namespace commtune {

WaitWatch::WaitWatch(std::chrono::milliseconds period, std::function<void()> look)
    : period_(period), look_(std::move(look)), thread_([this] { run(); }) {}

WaitWatch::~WaitWatch() {
  {
    const std::lock_guard<std::mutex> lock(ending_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void WaitWatch::run() {
  std::uint64_t seen = 0;
  std::unique_lock<std::mutex> lock(ending_);
  while (!changed_.wait_for(lock, period_, [this] { return ends_; })) {
    const std::uint64_t wait = wait_.load(std::memory_order_acquire);
    if (wait != 0 && wait == seen) look_after(wait);
    seen = wait;
  }
}

/// The wait may end meanwhile: whoever ends it then waits for the lock.
void WaitWatch::look_after(std::uint64_t wait) {
  const std::lock_guard<std::mutex> lock(looking_);
  std::uint64_t expected = wait;
  if (!wait_.compare_exchange_strong(expected, wait | kLooking, std::memory_order_acq_rel)) return;
  look_();
  expected = wait | kLooking;
  wait_.compare_exchange_strong(expected, wait, std::memory_order_acq_rel);
}

void WaitWatch::finish_look() { const std::lock_guard<std::mutex> lock(looking_); }

}  // namespace commtune
