#include "serving/serve.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "cli/exit.h"
#include "error.h"
#include "serving/order.h"
#include "serving/relay.h"
#include "timing/clock.h"

namespace commtune {

namespace {

/// How late a rank that waits for its next run begins with it. Its core is free meanwhile.
constexpr std::chrono::microseconds kNap{200};
/// How late the end of a process is seen.
constexpr std::chrono::milliseconds kLook{2};
/// Open MPI's launcher doesn't pass on that its input ended: who started it may be gone.
constexpr int kIdleMilliseconds = 60'000;
/// Shells' word for a process that a signal ended.
constexpr int kSignalled = 128;

void leave_input() {
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0) throw Error("/dev/null can't be read");
  close(nothing);
}

/// Lines of standard input.
class Input {
 public:
  /// The next one; empty at the end, or when none came for long.
  std::string next_line() {
    std::size_t end = 0;
    while ((end = text_.find('\n')) == std::string::npos) {
      pollfd input{STDIN_FILENO, POLLIN, 0};
      std::array<char, 4096> piece{};
      const int is_there = poll(&input, 1, kIdleMilliseconds);
      const ssize_t bytes =
          is_there > 0 ? read(STDIN_FILENO, piece.data(), piece.size()) : is_there;
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes < 0) throw Error("standard input: " + std::string(std::strerror(errno)));
      if (bytes == 0) return "";
      text_.append(piece.data(), static_cast<std::size_t>(bytes));
    }
    const std::string line = text_.substr(0, end);
    text_.erase(0, end + 1);
    return line;
  }

 private:
  std::string text_;
};

/// The next line for all ranks; empty at the end.
std::string next_line(const World& world, Input& input) {
  std::string line;
  if (world.is_first()) {
    line = input.next_line();
  } else {
    while (!world.has_message()) std::this_thread::sleep_for(kNap);
  }
  return world.from_first(line);
}

/// In the child: it goes with its parent, whatever ends that.
void follow(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kExitFailure);
}

[[noreturn]] void run_forked(const Order& order, const World& world, Relay& relay,
                             const MakeRun& make_run) {
  leave_input();
  for (const std::string& variable : order.variables) {
    const std::size_t end = variable.find('=');
    setenv(variable.substr(0, end).c_str(), variable.c_str() + end + 1, 1);
  }
  const World forked(world, relay.transport());
  forked.end_process(make_run(order.arguments, forked));
}

/// Does what the child asks for until it ends. Returns its status.
int attend(pid_t child, double limit_s, Relay& relay, const World& world) {
  const Clock clock;
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(child, &status, WNOHANG)) == 0) {
    relay.serve(world.transport(), kLook);
    if (clock.now() > limit_s) kill(child, SIGKILL);
  }
  if (ended < 0) throw Error("waitpid: " + std::string(std::strerror(errno)));
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  std::fprintf(stderr, "commtune-bench: rank %d exited on signal %d (%s)\n", world.rank(),
               WTERMSIG(status), strsignal(WTERMSIG(status)));
  return kSignalled + WTERMSIG(status);
}

}  // namespace

int serve(const World& world, const MakeRun& make_run) {
  if (!world.is_first()) leave_input();
  std::signal(SIGCHLD, SIG_DFL);  // who started it may ignore it: children would leave no status
  Relay relay;
  Input input;
  for (std::string line; !(line = next_line(world, input)).empty();) {
    const Order order = parse_order(line);
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child < 0) throw Error("fork failed");
    if (child == 0) {
      follow(parent);
      run_forked(order, world, relay, make_run);
    }
    if (const int status = attend(child, order.limit_s, relay, world); status != kExitOk) {
      // The other ranks' processes may be waiting for this one's for ever.
      wait_to_be_heard();
      MPI_Abort(MPI_COMM_WORLD, status);
      _exit(status);  // MPICH may return from it, and the run would seem to have ended well
    }
    world.barrier();
    if (world.is_first()) std::printf("%s\n", kRunEnded);
    std::fflush(stdout);
  }
  return kExitOk;
}

}  // namespace commtune
