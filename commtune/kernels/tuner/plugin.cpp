// A tuner plugin for NCCL: algorithm, protocol and channels of each collective by its size, from
// the file named by COMMTUNE_TUNER_FILE.
//
// Ranks that choose differently hang. So a file that can't be used ends the communicator's start
// with an error, and does not leave one rank with NCCL's choice among others that have rules; and
// what was read first in a process holds in it to the end, whatever becomes of the file. So the
// library stays loaded when NCCL unloads it (CMakeLists.txt).

#include <strings.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "abi.h"
#include "rules.h"

namespace tuner {
namespace {

constexpr const char* kVariable = "COMMTUNE_TUNER_FILE";
constexpr unsigned long kSubsystems = nccl::kLogInit | nccl::kLogTuning;

/// Whether NCCL's log shows warnings. By default it shows nothing at all.
bool log_shows_warnings() {
  const char* level = std::getenv("NCCL_DEBUG");
  if (level == nullptr) return false;
  for (const char* shown : {"WARN", "INFO", "ABORT", "TRACE"}) {
    if (strcasecmp(level, shown) == 0) return true;
  }
  return false;
}

/// What is said goes to NCCL's log; what is wrong to standard error too, if that doesn't show it.
class Log {
 public:
  explicit Log(nccl::Logger logger) : logger_(logger) {}

  __attribute__((format(printf, 2, 3))) void inform(const char* format, ...) const {
    va_list arguments;
    va_start(arguments, format);
    say(nccl::kInfo, text_of(format, arguments));
    va_end(arguments);
  }

  __attribute__((format(printf, 2, 3))) void warn(const char* format, ...) const {
    va_list arguments;
    va_start(arguments, format);
    const std::string text = text_of(format, arguments);
    va_end(arguments);
    say(nccl::kWarn, text);
    if (logger_ == nullptr || !log_shows_warnings()) {
      std::fprintf(stderr, "commtune tuner: %s\n", text.c_str());
    }
  }

 private:
  static std::string text_of(const char* format, va_list arguments) {
    std::array<char, 2048> text = {};
    std::vsnprintf(text.data(), text.size(), format, arguments);
    return text.data();
  }

  void say(nccl::LogLevel level, const std::string& text) const {
    if (logger_ == nullptr) return;
    logger_(level, kSubsystems, "tuner/plugin.cpp", __LINE__, "commtune tuner: %s", text.c_str());
  }

  nccl::Logger logger_;
};

/// A rule that is for a communicator, and whether its outcome was said.
struct Entry {
  Rule rule;
  std::atomic<bool> was_taken = false;
  std::atomic<bool> was_ignored = false;
};

/// Of one collective: its rules in the order of the file, and which of them cover a size. All sizes
/// are cut where a rule begins or ends, so that a call looks at rules for its size alone.
class Choices {
 public:
  void take(const std::vector<Rule>& rules) {
    entries_ = std::vector<Entry>(rules.size());
    for (size_t i = 0; i < rules.size(); ++i) entries_[i].rule = rules[i];
    parts_ = {{0, {}}};
    for (const Rule& rule : rules) {
      parts_.push_back({rule.least_bytes, {}});
      if (rule.most_bytes < UINT64_MAX) parts_.push_back({rule.most_bytes + 1, {}});
    }
    std::sort(parts_.begin(), parts_.end(),
              [](const Part& one, const Part& other) { return one.start < other.start; });
    const auto same = [](const Part& one, const Part& other) { return one.start == other.start; };
    parts_.erase(std::unique(parts_.begin(), parts_.end(), same), parts_.end());
    for (Part& part : parts_) {
      for (Entry& entry : entries_) {
        const bool covers =
            entry.rule.least_bytes <= part.start && part.start <= entry.rule.most_bytes;
        if (covers) part.entries.push_back(&entry);
      }
    }
  }

  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }

  [[nodiscard]] const std::vector<Entry*>& covering(uint64_t bytes) const {
    const auto above =
        std::upper_bound(parts_.begin(), parts_.end(), bytes,
                         [](uint64_t size, const Part& part) { return size < part.start; });
    return std::prev(above)->entries;
  }

  /// Sizes without a rule that were said: a bit for each power of two.
  std::atomic<uint64_t> said_without = 0;

 private:
  struct Part {
    uint64_t start;  // to where the next one starts
    std::vector<Entry*> entries;
  };

  std::vector<Entry> entries_;
  std::vector<Part> parts_;
};

struct Communicator {
  explicit Communicator(nccl::Logger logger) : log(logger) {}
  Log log;
  std::array<Choices, kCollectives.size()> choices;
};

/// Whether a communicator of this process has had rules that are for it.
std::atomic<bool> has_matched = false;
std::atomic<bool> has_warned_of_others = false;
std::atomic<bool> has_warned_of_no_file = false;

std::string counted(size_t number, const char* what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

/// What became of a file that was read before; empty where it is the same.
std::string change_of(const std::string& path, const RuleFile& before) {
  try {
    return read_rules(path).digest == before.digest ? "" : "its text is another one";
  } catch (const Unusable& now) {
    return now.what();
  }
}

/// The file, as it was when this process read it first.
std::shared_ptr<const RuleFile> rules_of(const std::string& path, const Log& log) {
  static std::mutex mutex;
  static std::shared_ptr<const RuleFile> first;
  static bool has_warned = false;
  const std::lock_guard<std::mutex> lock(mutex);
  if (first == nullptr) {
    first = std::make_shared<RuleFile>(read_rules(path));
    log.inform("%s in %s, digest %016llx%s", counted(first->rules.size(), "rule").c_str(),
               path.c_str(), static_cast<unsigned long long>(first->digest),
               first->has_crlf ? "; its lines end as on Windows, and are read all the same" : "");
  } else if (const std::string change = change_of(path, *first); !change.empty() && !has_warned) {
    has_warned = true;
    log.warn("%s=%s was replaced while the program runs (%s): the rules that were read first stay",
             kVariable, path.c_str(), change.c_str());
  }
  return first;
}

std::string any_or(int number, const char* what) {
  if (number == kAny) return std::string("any number of ") + what + "s";
  return counted(static_cast<size_t>(number), what);
}

/// Once a process, and not if another communicator had rules: programs split communicators.
void say_others(const RuleFile& file, size_t ranks, size_t nodes, const Log& log) {
  const Rule& one = file.rules.front();
  const std::string text = "no rule is for a communicator of " + counted(ranks, "rank") + " on " +
                           counted(nodes, "node") + ": NCCL chooses. Line " +
                           std::to_string(one.line) + " is for " + any_or(one.ranks, "rank") +
                           " on " + any_or(one.nodes, "node");
  if (!has_matched && !has_warned_of_others.exchange(true)) {
    log.warn("%s", text.c_str());
  } else {
    log.inform("%s", text.c_str());
  }
}

bool is_for(const Rule& rule, size_t ranks, size_t nodes) {
  const auto fits = [](int wanted, size_t number) {
    return wanted == kAny || static_cast<size_t>(wanted) == number;
  };
  return fits(rule.ranks, ranks) && fits(rule.nodes, nodes);
}

std::unique_ptr<Communicator> make_communicator(const RuleFile& file, size_t ranks, size_t nodes,
                                                nccl::Logger logger) {
  auto made = std::make_unique<Communicator>(logger);
  size_t matching = 0;
  for (size_t collective = 0; collective < made->choices.size(); ++collective) {
    std::vector<Rule> own;
    for (const Rule& rule : file.rules) {
      const bool is_own = static_cast<size_t>(rule.collective) == collective;
      if (is_own && is_for(rule, ranks, nodes)) own.push_back(rule);
    }
    made->choices[collective].take(own);
    matching += own.size();
  }
  // A communicator of one rank communicates with nobody.
  if (matching == 0 && ranks > 1) say_others(file, ranks, nodes, made->log);
  if (matching > 0) {
    has_matched = true;
    made->log.inform("%s for this communicator of %s on %s", counted(matching, "rule").c_str(),
                     counted(ranks, "rank").c_str(), counted(nodes, "node").c_str());
  }
  return made;
}

nccl::Result start(size_t ranks, size_t nodes, nccl::Logger logger, void** context) noexcept {
  const Log log(logger);
  *context = nullptr;
  const char* path = std::getenv(kVariable);
  if (path == nullptr || *path == '\0') {
    if (!has_warned_of_no_file.exchange(true)) {
      log.warn("%s is not set: NCCL chooses everything", kVariable);
    }
    return nccl::kSuccess;
  }
  try {
    *context = make_communicator(*rules_of(path, log), ranks, nodes, logger).release();
    return nccl::kSuccess;
  } catch (const Unusable& why) {
    log.warn(
        "%s=%s can't be used: %s. Mend the file on all nodes, or unset the variable on all "
        "ranks: with it on some only they would choose differently, and hang",
        kVariable, path, why.what());
    return nccl::kInvalidUsage;
  } catch (const std::exception& error) {
    log.warn("%s=%s: %s", kVariable, path, error.what());
    return nccl::kSystemError;
  }
}

bool fits(const Rule& rule, int pipe_operations, int registered) {
  return (rule.pipe_operations == kAny || rule.pipe_operations == pipe_operations) &&
         (rule.registered == kAny || rule.registered == registered);
}

/// The first time only; a plain load is all that it costs afterwards.
bool is_first(std::atomic<bool>& said) {
  return !said.load(std::memory_order_relaxed) && !said.exchange(true, std::memory_order_relaxed);
}

std::string choice_of(const Rule& rule) {
  return std::string(kAlgorithms[static_cast<size_t>(rule.algorithm)]) + "/" +
         kProtocols[static_cast<size_t>(rule.protocol)];
}

/// What NCCL uses in place of its own number, which is smaller at small sizes. It does not cut it
/// to the channels that there are where switches reduce (CollNet, and NVLS between nodes).
int channels_of(const Rule& rule) {
  return kCollnetDirect <= rule.algorithm && rule.algorithm <= kNvls ? 0 : rule.channels;
}

void say_taken(const Log& log, const Rule& rule, uint64_t bytes) {
  const std::string said = counted(static_cast<size_t>(rule.channels), "channel");
  const std::string channels = channels_of(rule) > 0 ? said + " in place of NCCL's own number"
                               : rule.channels > 0
                                   ? "channels as NCCL takes them (" + said + " ignored)"
                                   : "channels as NCCL takes them";
  log.inform(
      "%s of %llu bytes: %s, %s (line %d)", kCollectives[static_cast<size_t>(rule.collective)],
      static_cast<unsigned long long>(bytes), choice_of(rule).c_str(), channels.c_str(), rule.line);
}

void say_ignored(const Log& log, const Rule& rule, uint64_t bytes) {
  log.warn(
      "%s of %llu bytes: NCCL does not offer %s here (line %d): this communicator can't do "
      "it, or NCCL_ALGO or NCCL_PROTO rules it out. The next rule that fits is taken; without "
      "one NCCL chooses",
      kCollectives[static_cast<size_t>(rule.collective)], static_cast<unsigned long long>(bytes),
      choice_of(rule).c_str(), rule.line);
}

void say_without(Communicator& communicator, size_t collective, uint64_t bytes) {
  Choices& choices = communicator.choices[collective];
  int power = 0;
  while (bytes >> power > 1) ++power;
  const uint64_t bit = choices.entries().empty() ? UINT64_MAX : uint64_t{1} << power;
  if ((choices.said_without.load(std::memory_order_relaxed) & bit) != 0) return;
  if ((choices.said_without.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return;
  const char* name = kCollectives[collective];
  if (choices.entries().empty()) {
    communicator.log.inform("no rule is for %s here: NCCL chooses", name);
    return;
  }
  uint64_t least = UINT64_MAX;
  uint64_t most = 0;
  for (const Entry& entry : choices.entries()) {
    least = std::min(least, entry.rule.least_bytes);
    most = std::max(most, entry.rule.most_bytes);
  }
  communicator.log.inform(
      "%s of %llu bytes: no rule fits, NCCL chooses (rules go from %llu to "
      "%llu bytes)",
      name, static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(least),
      static_cast<unsigned long long>(most));
}

nccl::Result choose(void* context, int collective, size_t bytes, int pipe_operations, float** costs,
                    int algorithms, int protocols, int registered, int* channels) noexcept {
  auto* communicator = static_cast<Communicator*>(context);
  if (communicator == nullptr || collective < 0) return nccl::kSuccess;
  const auto index = static_cast<size_t>(collective);
  if (index >= kCollectives.size()) return nccl::kSuccess;
  auto* table = reinterpret_cast<float*>(costs);
  for (Entry* entry : communicator->choices[index].covering(bytes)) {
    const Rule& rule = entry->rule;
    if (!fits(rule, pipe_operations, registered)) continue;
    float* cost = rule.algorithm < algorithms && rule.protocol < protocols
                      ? table + static_cast<ptrdiff_t>(rule.algorithm) * protocols + rule.protocol
                      : nullptr;
    if (cost == nullptr || *cost < 0.0F) {
      if (is_first(entry->was_ignored)) say_ignored(communicator->log, rule, bytes);
      continue;
    }
    *cost = 0.0F;  // less than all others
    if (const int number = channels_of(rule); number > 0) *channels = number;
    if (is_first(entry->was_taken)) say_taken(communicator->log, rule, bytes);
    return nccl::kSuccess;
  }
  say_without(*communicator, index, bytes);
  return nccl::kSuccess;
}

nccl::Result finish(void* context) noexcept {
  delete static_cast<Communicator*>(context);
  return nccl::kSuccess;
}

nccl::Result start_v5(void** context, uint64_t /*communicator*/, size_t ranks, size_t nodes,
                      nccl::Logger logger, void* /*domains*/, void* /*constants*/) noexcept {
  return start(ranks, nodes, logger, context);
}

}  // namespace
}  // namespace tuner

// NCCL takes the newest version that it knows by these names.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
extern const nccl::TunerV4 ncclTunerPlugin_v4;
extern const nccl::TunerV5 ncclTunerPlugin_v5;
extern const nccl::TunerV6 ncclTunerPlugin_v6;
const nccl::TunerV4 ncclTunerPlugin_v4 = {"commtune", tuner::start, tuner::choose, tuner::finish};
const nccl::TunerV5 ncclTunerPlugin_v5 = {"commtune", tuner::start_v5, tuner::choose,
                                          tuner::finish};
const nccl::TunerV6 ncclTunerPlugin_v6 = {"commtune", tuner::start_v5, tuner::choose, tuner::finish,
                                          nullptr};
}
// NOLINTEND(readability-identifier-naming)
