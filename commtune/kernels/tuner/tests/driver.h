#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "abi.h"
#include "harness.h"

/// NCCL's part: loads the plugin by its path, and drives it through its tables of functions.
namespace driver {

constexpr int kAllgather = 2;
constexpr int kAllreduce = 4;
constexpr int kAlltoall = 8;
constexpr int kTree = 0;
constexpr int kRing = 1;
constexpr int kPat = 6;
constexpr int kLl = 0;
constexpr int kLl128 = 1;
constexpr int kSimple = 2;

inline std::mutex log_mutex;
inline std::vector<std::string> log_lines;  // "2 ..." is a warning, "3 ..." information

inline void keep_line(nccl::LogLevel level, unsigned long, const char*, int, const char* format,
                      ...) {
  std::array<char, 4096> text = {};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  const std::lock_guard<std::mutex> lock(log_mutex);
  log_lines.push_back(std::to_string(level) + " " + text.data());
}

inline int count_lines(const std::string& part) {
  int count = 0;
  for (const std::string& line : log_lines) count += harness::contains(line, part) ? 1 : 0;
  return count;
}

inline int count_warnings() {
  int count = 0;
  for (const std::string& line : log_lines) count += line.rfind("2 ", 0) == 0 ? 1 : 0;
  return count;
}

/// A file that is removed again; COMMTUNE_TUNER_FILE names it.
class NamedFile {
 public:
  explicit NamedFile(const std::string& text) {
    const int file = mkstemp(path_.data());
    if (file < 0) throw std::runtime_error("no temporary file");
    close(file);
    write(text);
    setenv("COMMTUNE_TUNER_FILE", path_.c_str(), 1);
  }
  ~NamedFile() { unlink(path_.c_str()); }
  NamedFile(const NamedFile&) = delete;
  NamedFile& operator=(const NamedFile&) = delete;

  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

 private:
  std::string path_ = "/tmp/commtune-tuner-test-XXXXXX";
};

/// The library, loaded afresh, which a copy is: it knows of no file yet.
class Plugin {
 public:
  Plugin() {
    close(mkstemp(path_.data()));
    std::ofstream(path_, std::ios::binary)
        << std::ifstream(COMMTUNE_TUNER_LIBRARY, std::ios::binary).rdbuf();
    load();
    log_lines.clear();
  }
  ~Plugin() {
    dlclose(library_);
    unlink(path_.c_str());
  }
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  template <class Tuner>
  const Tuner& table(const char* symbol) const {
    const void* found = dlsym(library_, symbol);
    if (found == nullptr) throw std::runtime_error(dlerror());
    return *static_cast<const Tuner*>(found);
  }
  [[nodiscard]] const nccl::TunerV5& v5() const {
    return table<nccl::TunerV5>("ncclTunerPlugin_v5");
  }

  /// As NCCL does when the last communicator has gone and another one comes.
  void load_again() {
    dlclose(library_);
    load();
  }

 private:
  void load() {
    library_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) throw std::runtime_error(dlerror());
  }

  std::string path_ = "/tmp/commtune-tuner-library-XXXXXX";
  void* library_ = nullptr;
};

struct Choice {
  int algorithm = -1;  // -1: costs are as they were
  int protocol = -1;
  int channels = 0;
  bool operator==(const Choice& other) const {
    return algorithm == other.algorithm && protocol == other.protocol && channels == other.channels;
  }
};

constexpr Choice kOfNccl = {};

/// Costs as NCCL has them: 6 or 7 algorithms, all usable but `ignored`.
class Call {
 public:
  int collective = kAllreduce;
  size_t bytes = 8;
  int algorithms = 7;
  int pipe_operations = 1;
  int registered = 0;
  std::pair<int, int> ignored = {-1, -1};

  Choice by(nccl::GetCollInfo choose, void* context) const {
    constexpr int kProtocolCount = 3;
    std::vector<float> costs(static_cast<size_t>(algorithms * kProtocolCount), 5.0F);
    if (ignored.first >= 0) {
      costs[static_cast<size_t>(ignored.first * kProtocolCount + ignored.second)] = -1.0F;
    }
    Choice choice;
    EXPECT(choose(context, collective, bytes, pipe_operations,
                  reinterpret_cast<float**>(costs.data()), algorithms, kProtocolCount, registered,
                  &choice.channels) == nccl::kSuccess);
    for (int i = 0; i < algorithms * kProtocolCount; ++i) {
      if (costs[static_cast<size_t>(i)] != 0.0F) continue;
      choice.algorithm = i / kProtocolCount;
      choice.protocol = i % kProtocolCount;
    }
    return choice;
  }
};

/// A communicator under version 5.
class Communicator {
 public:
  explicit Communicator(const Plugin& plugin, size_t ranks = 2, size_t nodes = 1)
      : tuner_(plugin.v5()) {
    result = tuner_.init(&context_, 1, ranks, nodes, keep_line, nullptr, nullptr);
  }
  ~Communicator() { tuner_.finalize(context_); }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] Choice choose(const Call& call) const {
    return call.by(tuner_.get_coll_info, context_);
  }
  [[nodiscard]] Choice at(size_t bytes) const {
    Call call;
    call.bytes = bytes;
    return choose(call);
  }
  [[nodiscard]] void* context() const { return context_; }

  nccl::Result result = nccl::kInternalError;

 private:
  const nccl::TunerV5& tuner_;
  void* context_ = nullptr;
};

/// What is printed to standard error meanwhile.
template <class Act>
std::string errors_of(const Act& act) {
  std::fflush(stderr);
  const int before = dup(STDERR_FILENO);
  std::string path = "/tmp/commtune-tuner-test-XXXXXX";
  const int file = mkstemp(path.data());
  dup2(file, STDERR_FILENO);
  act();
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  close(file);
  std::ifstream opened(path);
  const std::string text((std::istreambuf_iterator<char>(opened)), {});
  unlink(path.c_str());
  return text;
}

}  // namespace driver
