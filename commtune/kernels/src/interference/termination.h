#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace commtune {

/// Why an aggressor ends; `measured`: those that it was beside are done.
enum class Ending { signal, stop_file, longest, measured };

/// The word in the records.
std::string_view word(Ending ending);

/// Makes sure that nothing is left for ever: where ranks can't agree, because one of them is gone,
/// an alarm ends the process with a message some seconds after its time.
/// @param longest_s seconds from now that the process may take
void limit_time(double longest_s);

/// The time is no longer limited.
void unlimit_time();

/// From here on SIGTERM and SIGINT no longer end this process: they are kept for was_signalled().
/// Its time is limited, and ends some seconds after a signal.
void heed_signals(double longest_s);

bool was_signalled();

/// What is left to do must be done within seconds, or the alarm ends the process.
void hurry();

/// Tells when an endless run is to end; asked on one rank, which decides for all.
class EndWatch {
 public:
  /// @param stop_file ends the run when it is there; empty: there is no such file
  EndWatch(std::string stop_file, double longest_s);

  /// Whether there is a folder for the stop file.
  bool has_folder() const;

  /// @param signalled whether any rank was signalled
  /// @param now_s seconds since the process started
  std::optional<Ending> ending(bool signalled, double now_s);

 private:
  bool sees_file(double now_s);

  std::string stop_file_;
  double longest_s_;
  double next_look_s_ = 0.0;
};

}  // namespace commtune
