#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend_options.h"
#include "interference/traffic_pattern.h"
#include "operations/fault_injection.h"
#include "operations/operations.h"
#include "operations/shape.h"
#include "timing/stopping.h"

namespace commtune {

/// What a launch is made for: times, what the library does (untimed), traffic beside another run,
/// or one run after the other as it is told.
enum class Mode { measure, trace, aggress, serve };

/// How operations are timed. `blocking`: each is waited for before the next. `batched`: so many are
/// enqueued on the device, then waited for together, as nccl-tests does.
enum class Timing { blocking, batched };

/// The clock of the processor, or of the device that the work is enqueued on.
enum class Timer { wall, device };

/// Where ranks run: as they were started, or on the CPUs near their GPU.
enum class Bind { none, gpu };

/// How the process ends. `quick`: memory, communicators and mappings are left to the system, which
/// takes them back with the process.
enum class End { clean, quick };

/// The words for records.
std::string_view word(Timing timing);
std::string_view word(Timer timer);
std::string_view word(Waiting waiting);
std::string_view word(Allocator allocator);

/// What the command line asks for.
struct Options {
  Mode mode = Mode::measure;
  std::string backend = "mpi-host";
  std::string inside;    ///< backend of messages inside nodes; empty: `backend`
  std::string between;   ///< backend of messages between nodes; empty: `backend`
  std::string assemble;  ///< backend of the last step of striping; empty: as inside nodes
  Shape shape;
  std::string matrix;  ///< file of Operation::matrix; Shape's flows come from it, once MPI is up
  Timing timing = Timing::blocking;
  Timer timer = Timer::wall;
  BackendOptions backend_options;
  bool graph = false;  ///< of Timing::batched: the batch is recorded once, then launched as a whole
  int operations = 0;  ///< in one sample; 0: Timing::blocking chooses them by their length
  Bind bind = Bind::none;
  bool rotate = false;       ///< each operation is done at another place of the buffers
  bool shares_gpus = false;  ///< more ranks than GPUs are no mistake
  Operation operation = Operation::allreduce;
  std::vector<Operation> then;  ///< measured after it, in the same processes
  DataType type = DataType::float32;
  Reduction reduction = Reduction::sum;
  std::vector<std::size_t> sizes;
  std::string records;  ///< file to write; empty: standard output
  std::string run_id;
  std::vector<std::string> env_names;
  int expect_ranks = 0;               ///< nothing is done with another number; 0: any
  std::vector<std::string> controls;  ///< MPI_T control variables to report; Mode::trace only
  AggressorOptions aggressor;         ///< of Mode::aggress, or beside those that measure
  StoppingLimits limits;
  std::uint64_t seed = 1;
  bool check = true;
  std::optional<Fault> fault;
  End end = End::clean;
};

/// Whether some ranks are aggressors beside those that measure.
bool has_aggressors(const Options& options);

/// What is measured, in this order.
std::vector<Operation> operations_of(const Options& options);

/// UsageError where one of them can't be done by so many ranks.
void check_ranks(const Options& options, int ranks);

/// The backend of the aggressors beside a run.
const std::string& aggressor_backend(const Options& options);

/// Whether ranks need GPUs.
bool uses_gpu(const Options& options);

/// Sizes end here: counts of MPI calls are int, and one element can be a byte.
constexpr std::size_t kLargestSize = std::size_t{1} << 30;

/// What the arguments come to: a run, or a text to print.
struct CommandLine {
  Options options;
  std::string print;  ///< not empty for --help, --version and --backends
};

/// Reads the arguments (without the program's name). UsageError says what is legal.
CommandLine parse_command_line(const std::vector<std::string>& arguments);

}  // namespace commtune
