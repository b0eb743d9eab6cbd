#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "harness.h"
#include "interference/termination.h"

using namespace commtune;

TEST(nothing_ends_a_run_before_its_time) {
  EndWatch watch("", 10.0);
  EXPECT(!watch.ending(false, 9.9));
  EXPECT(watch.ending(false, 10.0) == Ending::longest);
}

TEST(a_signal_ends_it_at_once) {
  EndWatch watch("", 10.0);
  EXPECT(watch.ending(true, 0.0) == Ending::signal);
}

TEST(the_stop_file_ends_it_when_it_appears) {
  const std::string file = "commtune-test-stop-" + std::to_string(getpid());
  EndWatch watch(file, 10.0);
  EXPECT(watch.has_folder());
  EXPECT(!watch.ending(false, 0.0));
  std::fclose(std::fopen(file.c_str(), "w"));
  // It is not looked for at every call: that would be a burden to a network file system.
  EXPECT(!watch.ending(false, 0.1));
  EXPECT(watch.ending(false, 0.3) == Ending::stop_file);
  std::remove(file.c_str());
}

TEST(the_folder_of_the_stop_file_is_asked_for) {
  EXPECT(EndWatch("/tmp/a", 1.0).has_folder());
  EXPECT(EndWatch("/a", 1.0).has_folder());
  EXPECT(!EndWatch("/nonexistent/a", 1.0).has_folder());
}

TEST(signals_are_kept) {
  heed_signals(3600.0);
  EXPECT(!was_signalled());
  std::raise(SIGTERM);
  std::raise(SIGINT);
  EXPECT(was_signalled());
}
