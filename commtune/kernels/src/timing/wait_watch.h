#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace commtune {

/// A thread that looks after long waits of another one, which may not be able to end by itself.
///
/// It sleeps as long as waits are short; a wait that is seen twice, `period` apart, is looked after
/// then and at every further period. To the one that waits it costs two writes to memory.
class WaitWatch {
 public:
  /// @param look never called while nobody waits; must not throw
  WaitWatch(std::chrono::milliseconds period, std::function<void()> look);
  ~WaitWatch();
  WaitWatch(const WaitWatch&) = delete;
  WaitWatch& operator=(const WaitWatch&) = delete;

  /// One thread only waits. Neither throws.
  void begin() { wait_.store(kStep * ++waits_, std::memory_order_release); }

  /// Returns when nobody looks any more; what `look` wrote can be read then.
  void end() {
    if ((wait_.exchange(0, std::memory_order_acq_rel) & kLooking) != 0) finish_look();
  }

 private:
  static constexpr std::uint64_t kLooking = 1;
  static constexpr std::uint64_t kStep = 2;

  void run();
  void look_after(std::uint64_t wait);
  void finish_look();

  std::chrono::milliseconds period_;
  std::function<void()> look_;
  std::uint64_t waits_ = 0;
  std::atomic<std::uint64_t> wait_{0};  ///< its number times kStep, 0 for none; kLooking
  std::mutex looking_;
  std::mutex ending_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace commtune
