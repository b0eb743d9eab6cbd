#include "ranks/cpus.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>

#include "error.h"
#include "records/folder.h"

namespace commtune {

namespace {

constexpr int kMostCpus = 1 << 14;
constexpr std::size_t kMaskBytes = CPU_ALLOC_SIZE(kMostCpus);

struct FreeMask {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};
using Mask = std::unique_ptr<cpu_set_t, FreeMask>;

Mask empty_mask() {
  Mask mask(CPU_ALLOC(kMostCpus));
  CPU_ZERO_S(kMaskBytes, mask.get());
  return mask;
}

[[noreturn]] void fail(std::string_view text) {
  throw Error("'" + std::string(text) + "' is no list of CPUs");
}

/// Takes a number off the beginning.
int take_number(std::string_view& text, std::string_view whole) {
  int number = -1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc{} || number < 0 || number >= kMostCpus) fail(whole);
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return number;
}

void take_range(std::string_view& text, std::string_view whole, std::set<int>& cpus) {
  const int first = take_number(text, whole);
  int last = first;
  if (!text.empty() && text.front() == '-') {
    text.remove_prefix(1);
    last = take_number(text, whole);
  }
  if (last < first) fail(whole);
  for (int cpu = first; cpu <= last; ++cpu) cpus.insert(cpu);
}

}  // namespace

std::set<int> parse_cpu_list(std::string_view text) {
  const std::string_view whole = text;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  std::set<int> cpus;
  while (!text.empty()) {
    take_range(text, whole, cpus);
    if (text.empty()) break;
    if (text.front() != ',' || text.size() == 1) fail(whole);
    text.remove_prefix(1);
  }
  return cpus;
}

std::set<int> common(const std::set<int>& one, const std::set<int>& other) {
  std::set<int> both;
  std::set_intersection(one.begin(), one.end(), other.begin(), other.end(),
                        std::inserter(both, both.end()));
  return both;
}

std::set<int> narrowed(const std::set<int>& allowed, const std::set<int>& near) {
  const std::set<int> both = common(allowed, near);
  return both.size() < allowed.size() ? both : std::set<int>{};
}

std::set<int> allowed_cpus() {
  const Mask mask = empty_mask();
  if (sched_getaffinity(0, kMaskBytes, mask.get()) != 0) throw Error("sched_getaffinity failed");
  std::set<int> cpus;
  for (int cpu = 0; cpu < kMostCpus; ++cpu) {
    if (CPU_ISSET_S(cpu, kMaskBytes, mask.get())) cpus.insert(cpu);
  }
  return cpus;
}

void run_on_cpus(const std::set<int>& cpus) {
  const Mask mask = empty_mask();
  for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), kMaskBytes, mask.get());
  // Libraries may have started threads of their own already.
  for (const std::string& thread : names_in("/proc/self/task")) {
    if (sched_setaffinity(std::stoi(thread), kMaskBytes, mask.get()) != 0 && errno != ESRCH) {
      throw Error(std::string("sched_setaffinity: ") + std::strerror(errno));
    }
  }
}

}  // namespace commtune
