#include "interference/termination.h"

#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <utility>

#include "error.h"

namespace commtune {

namespace {

/// Longer than the largest operation takes on a network that works.
constexpr unsigned kGraceSeconds = 5;
constexpr double kStopFileLookSeconds = 0.2;

volatile std::sig_atomic_t signal_came = 0;

void on_signal(int /*number*/) {
  if (signal_came != 0) return;
  signal_came = 1;
  alarm(kGraceSeconds);
}

void on_alarm(int /*number*/) {
  constexpr std::string_view kMessage = "commtune-bench: ended by force, ranks did not agree\n";
  // Only what may be called in a signal handler; there is nobody to tell if it fails.
  if (write(STDERR_FILENO, kMessage.data(), kMessage.size()) < 0) _exit(kExitFailure);
  _exit(kExitFailure);
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(number, &action, nullptr);
}

std::string folder_of(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : file.substr(0, slash);
}

/// A network file system may remember for half a minute that a file is not there; opening its
/// folder makes it look again.
bool exists(const std::string& file) {
  const int folder = open(folder_of(file).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) close(folder);
  return access(file.c_str(), F_OK) == 0;
}

}  // namespace

std::string_view word(Ending ending) {
  switch (ending) {
    case Ending::signal:
      return "signal";
    case Ending::stop_file:
      return "stop-file";
    case Ending::longest:
      return "longest";
    case Ending::measured:
      return "measured";
  }
  throw Error("an ending without a word");
}

void limit_time(double longest_s) {
  handle(SIGALRM, on_alarm);
  alarm(static_cast<unsigned>(std::ceil(longest_s)) + kGraceSeconds);
}

void unlimit_time() { alarm(0); }

void heed_signals(double longest_s) {
  limit_time(longest_s);
  handle(SIGTERM, on_signal);
  handle(SIGINT, on_signal);
}

bool was_signalled() { return signal_came != 0; }

void hurry() { alarm(kGraceSeconds); }

EndWatch::EndWatch(std::string stop_file, double longest_s)
    : stop_file_(std::move(stop_file)), longest_s_(longest_s) {}

bool EndWatch::has_folder() const {
  return stop_file_.empty() || access(folder_of(stop_file_).c_str(), F_OK) == 0;
}

std::optional<Ending> EndWatch::ending(bool signalled, double now_s) {
  if (signalled) return Ending::signal;
  if (sees_file(now_s)) return Ending::stop_file;
  if (now_s >= longest_s_) return Ending::longest;
  return std::nullopt;
}

bool EndWatch::sees_file(double now_s) {
  if (stop_file_.empty() || now_s < next_look_s_) return false;
  next_look_s_ = now_s + kStopFileLookSeconds;
  return exists(stop_file_);
}

}  // namespace commtune
