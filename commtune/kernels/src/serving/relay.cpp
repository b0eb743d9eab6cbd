#include "serving/relay.h"

#include <semaphore.h>
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <thread>

#include "error.h"

namespace commtune {

namespace {

/// Far more than ranks tell each other of themselves. Pages that nobody touches take no memory.
constexpr std::size_t kMostMessageBytes = std::size_t{16} << 20;
constexpr int kSpinsBeforeYield = 1000;

#if __GLIBC__ * 100 + __GLIBC_MINOR__ >= 230
constexpr clockid_t kClock = CLOCK_MONOTONIC;
int wait_until(sem_t* semaphore, const timespec* time) {
  return sem_clockwait(semaphore, kClock, time);
}
#else
constexpr clockid_t kClock = CLOCK_REALTIME;  // if it is set back, a wait takes longer
constexpr auto wait_until = sem_timedwait;
#endif

}  // namespace

struct Relay::Shared {
  enum class Ask : unsigned char { barrier, send, receive, next_bytes };

  sem_t asked;
  std::atomic<bool> answered;
  Ask ask;
  int peer;
  std::size_t bytes;  ///< of the data; of the answer to `next_bytes`
  std::byte data[kMostMessageBytes];
};

/// The child waits for an answer as it would wait inside of the MPI library, without sleeping: so
/// ranks leave a barrier as close together as there.
class Relay::Asking final : public Transport {
  using Ask = Shared::Ask;

 public:
  explicit Asking(Shared& shared) : shared_(shared) {}

  void barrier() override { ask(Ask::barrier, 0, 0); }

  void send(const void* data, std::size_t bytes, int to) override {
    check(bytes);
    std::memcpy(shared_.data, data, bytes);
    ask(Ask::send, to, bytes);
  }

  void receive(void* data, std::size_t bytes, int from) override {
    check(bytes);
    ask(Ask::receive, from, bytes);
    std::memcpy(data, shared_.data, bytes);
  }

  std::size_t next_bytes(int from) override {
    ask(Ask::next_bytes, from, 0);
    return shared_.bytes;
  }

 private:
  static void check(std::size_t bytes) {
    if (bytes > kMostMessageBytes) throw Error("a message of " + std::to_string(bytes) + " bytes");
  }

  void ask(Ask ask, int peer, std::size_t bytes) {
    shared_.ask = ask;
    shared_.peer = peer;
    shared_.bytes = bytes;
    shared_.answered.store(false, std::memory_order_relaxed);
    sem_post(&shared_.asked);
    for (int spins = 1; !shared_.answered.load(std::memory_order_acquire); ++spins) {
      if (spins % kSpinsBeforeYield == 0) std::this_thread::yield();
    }
  }

  Shared& shared_;
};

Relay::Relay() {
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw Error("mmap: " + std::string(std::strerror(errno)));
  shared_ = new (memory) Shared;
  if (sem_init(&shared_->asked, 1, 0) != 0) throw Error("sem_init failed");
}

Relay::~Relay() {
  sem_destroy(&shared_->asked);
  munmap(shared_, sizeof(Shared));
}

std::unique_ptr<Transport> Relay::transport() { return std::make_unique<Asking>(*shared_); }

void Relay::serve(Transport& real, std::chrono::milliseconds longest) {
  timespec until{};
  clock_gettime(kClock, &until);
  until.tv_nsec += std::chrono::nanoseconds(longest).count();
  until.tv_sec += until.tv_nsec / 1'000'000'000;
  until.tv_nsec %= 1'000'000'000;
  if (wait_until(&shared_->asked, &until) != 0) return;
  switch (shared_->ask) {
    case Shared::Ask::barrier:
      real.barrier();
      break;
    case Shared::Ask::send:
      real.send(shared_->data, shared_->bytes, shared_->peer);
      break;
    case Shared::Ask::receive:
      real.receive(shared_->data, shared_->bytes, shared_->peer);
      break;
    case Shared::Ask::next_bytes:
      shared_->bytes = real.next_bytes(shared_->peer);
      break;
  }
  shared_->answered.store(true, std::memory_order_release);
}

}  // namespace commtune
