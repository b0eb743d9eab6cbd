#include <atomic>
#include <chrono>
#include <thread>

#include "harness.h"
#include "timing/wait_watch.h"

using namespace commtune;
using std::chrono::milliseconds;

namespace {

void sleep_until(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::sleep_for(milliseconds(1));
}

}  // namespace

TEST(a_wait_that_lasts_is_looked_after_again_and_again) {
  std::atomic<int> looks{0};
  WaitWatch watch(milliseconds(1), [&looks] { ++looks; });
  watch.begin();
  while (looks < 3) std::this_thread::sleep_for(milliseconds(1));
  watch.end();
  const int before = looks;
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT(looks == before);
}

TEST(nothing_is_looked_after_before_the_period_is_over) {
  std::atomic<int> looks{0};
  {
    WaitWatch watch(std::chrono::hours(1), [&looks] { ++looks; });
    watch.begin();
    std::this_thread::sleep_for(milliseconds(20));
    watch.end();
  }
  EXPECT(looks == 0);
}

TEST(a_wait_ends_when_nobody_looks_any_more) {
  std::atomic<bool> has_begun{false};
  bool has_ended = false;
  WaitWatch watch(milliseconds(1), [&] {
    has_begun = true;
    std::this_thread::sleep_for(milliseconds(20));
    has_ended = true;
  });
  watch.begin();
  sleep_until(has_begun);
  watch.end();
  EXPECT(has_ended);
}

TEST(nobody_looks_between_waits) {
  std::atomic<bool> waits{false};
  std::atomic<int> looks{0};
  std::atomic<int> strays{0};
  WaitWatch watch(milliseconds(1), [&] {
    ++looks;
    if (!waits) ++strays;
  });
  for (int i = 0; looks < 20; ++i) {
    waits = true;
    watch.begin();
    std::this_thread::sleep_for(milliseconds(i % 5));
    watch.end();
    waits = false;
  }
  EXPECT(strays == 0);
}
