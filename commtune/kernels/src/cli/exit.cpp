#include "cli/exit.h"

#include <chrono>
#include <cstdio>
#include <thread>

namespace commtune {

namespace {

/// How long launchers need to pass on what a rank said, before the rank or its fellows end.
constexpr std::chrono::milliseconds kTimeToBeHeard{1000};

}  // namespace

void wait_to_be_heard() { std::this_thread::sleep_for(kTimeToBeHeard); }

int exit_of_all(ExitStatus status, const std::string& message, bool speak) {
  if (speak) {
    const char* waived = status == kExitWaived ? "waived: " : "";
    std::fprintf(stderr, "commtune-bench: %s%s\n", waived, message.c_str());
  } else {
    wait_to_be_heard();
  }
  return status;
}

}  // namespace commtune
