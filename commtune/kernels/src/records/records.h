#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "interference/aggressor.h"
#include "ranks/placement.h"
#include "ranks/world.h"
#include "timing/clock.h"
#include "timing/measure.h"
#include "timing/trace.h"

namespace commtune {

/// Version of the contract that the records follow; see contract/v1.schema.json.
constexpr int kContract = 1;

/// Where records go: a file or standard output, each line there as soon as it is written.
class RecordFile {
 public:
  /// An empty path means standard output. Error if the file can't be made.
  explicit RecordFile(const std::string& path);

  void write_line(const std::string& record);
  /// Text as it is, for fault injection.
  void write_raw(std::string_view text);

 private:
  struct Close {
    void operator()(std::FILE* file) const;
  };
  std::unique_ptr<std::FILE, Close> file_;
};

/// Everything about a run that is known before it measures.
struct RunFacts {
  std::vector<std::string> arguments;
  std::string_view backend;
  double init_s = 0.0;
  bool in_shared_launch = false;
  std::vector<std::string> environments;  ///< of each rank, as JSON objects
  std::vector<std::string> controls;      ///< likewise; empty where none was asked for
  std::vector<std::string> gpus;          ///< likewise; empty where none is used
  std::vector<std::string> nics;          ///< nearest to these, as JSON; empty likewise
  double gpu_start_s = 0.0;               ///< of all ranks' GPUs, longest; see device_start_s
  double gpu_facts_s = 0.0;               ///< asking the driver for `gpus` and `nics`, longest
  std::string_view memory = "host";
  std::string_view library;      ///< the backend's, where it is not MPI
  double library_init_s = 0.0;   ///< longest over ranks
  bool binds_late = false;       ///< ranks came to the CPUs near their GPU after MPI's start only
  const Roles* roles = nullptr;  ///< null where there are no aggressors beside the run
  int aggressor_window = 0;
};

/// The variables among `names` that this process has, as a JSON object.
std::string environment_json(const std::vector<std::string>& names);

/// @param placement of all ranks that facts are of: those that measure, then their aggressors
std::string header_record(const RunFacts& facts, const Options& options,
                          const Placement& placement);
std::string measurement_record(const SizeResult& result, bool named, bool oversubscribed);
std::string trace_record(const TraceResult& result);

struct Totals {
  std::optional<Traffic> aggressors;  ///< beside the run, from their beginning to their end
  bool aggressors_active = true;      ///< whether they moved messages during every measurement
  int measurements = 0;
  bool wrong = false;
  double elapsed_s = 0.0;                ///< since the process started
  double init_s = 0.0;                   ///< MPI_Init, longest over ranks
  double measure_s = 0.0;                ///< all sizes together
  std::vector<std::string> gpus_before;  ///< state of each rank's GPU, as JSON; empty: none is used
  std::vector<std::string> gpus_after;
};
std::string footer_record(const Totals& totals);

/// The records of an aggressor.
/// @param window messages that a sender has under way to one receiver
std::string aggressor_header_record(const RunFacts& facts, const Options& options,
                                    const Placement& placement, int window);
std::string traffic_record(const Traffic& traffic);
std::string aggressor_footer_record(const Totals& totals, const Traffic& traffic, Ending ending);

}  // namespace commtune
