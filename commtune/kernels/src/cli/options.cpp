#include "cli/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "backends/backend.h"
#include "build_info.h"
#include "cli/numbers.h"
#include "cli/option_checks.h"
#include "cli/words.h"
#include "error.h"

namespace commtune {

namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char character : text) {
    if (character == ',') {
      parts.emplace_back();
    } else {
      parts.back() += character;
    }
  }
  return parts;
}

std::vector<std::size_t> parse_sizes(const std::string& text) {
  std::vector<std::size_t> sizes;
  for (const std::string& part : split(text)) {
    const auto size = parse_number<std::size_t>("--sizes", part, 1, kLargestSize);
    if (std::find(sizes.begin(), sizes.end(), size) != sizes.end()) {
      throw UsageError("--sizes: " + part + " is there twice");
    }
    sizes.push_back(size);
  }
  return sizes;
}

constexpr Words<bool, 2> kYesOrNo{{{{true, "yes"}, {false, "no"}}}};
constexpr Words<bool, 2> kChecks{{{{true, "full"}, {false, "none"}}}};
constexpr Words<Mode, 4> kModes{{{{Mode::measure, "measure"},
                                  {Mode::trace, "trace"},
                                  {Mode::aggress, "aggress"},
                                  {Mode::serve, "serve"}}}};
constexpr Words<Timing, 2> kTimings{
    {{{Timing::blocking, "blocking"}, {Timing::batched, "batched"}}}};
constexpr Words<Timer, 2> kTimers{{{{Timer::wall, "wall"}, {Timer::device, "device"}}}};
constexpr Words<Waiting, 2> kWaitings{{{{Waiting::stream, "stream"}, {Waiting::poll, "poll"}}}};
constexpr Words<Allocator, 2> kAllocators{
    {{{Allocator::runtime, "runtime"}, {Allocator::library, "library"}}}};
constexpr Words<Bind, 2> kBinds{{{{Bind::none, "none"}, {Bind::gpu, "gpu"}}}};
constexpr Words<End, 2> kEnds{{{{End::clean, "clean"}, {End::quick, "quick"}}}};

std::vector<Operation> parse_operations(const std::string& text) {
  std::vector<Operation> operations;
  for (const std::string& name : split(text)) operations.push_back(parse_operation(name));
  return operations;
}

std::vector<std::string> parse_names(const std::string& text) {
  return text.empty() ? std::vector<std::string>{} : split(text);
}

double parse_span(const std::string& option, const std::string& text) {
  return parse_number(option, text, 1e-3, 1e6);
}

int parse_count(const std::string& option, const std::string& text, int low) {
  return parse_number<int>(option, text, low, 1'000'000);
}

using Setter = void (*)(Options&, const std::string& name, const std::string& value);

/// What an option is for: all, runs that do an operation at each size, aggressors by themselves or
/// beside a run, or only by themselves.
enum class For : unsigned char { all, operations, aggressor, aggress };

/// @param value the word for it in the help
/// @param help lines end in a newline, but for the last
struct Option {
  const char* name;
  const char* value;
  const char* help;
  Setter set;
  For what = For::all;
};

using Name = const std::string&;
using Value = const std::string&;

constexpr std::array<Option, 46> kOptions{{
    {"--op", "OPERATION",
     "between rank 0 and the last: ping-pong, bidirectional, stream;\n"
     "of all: allreduce, reduce, broadcast, allgather, reduce-scatter,\n"
     "alltoall, ring, incast, one-to-many, self;\n"
     "of groups: rail, asymmetric, symmetric, striping;\n"
     "others: pairs (one rank to one other, all pairs in turn), matrix",
     [](Options& o, Name, Value v) { o.operation = parse_operation(v); }, For::operations},
    {"--then", "OP[,OP...]",
     "measure these at all sizes afterwards, in the same processes and with the\n"
     "same communicators; their records name them. Not those of groups, stream,\n"
     "pairs, matrix",
     [](Options& o, Name, Value v) { o.then = parse_operations(v); }, For::operations},
    {"--backend", "NAME",
     "mpi-host (default); with GPUs: xccl, mpi-device, mpi-staged, ipc-put,\n"
     "ipc-get. 'commtune-bench --backends' lists those of this executable",
     [](Options& o, Name, Value v) { o.backend = v; }, For::operations},
    {"--sizes", "B[,B...]", "message sizes in bytes, one element to 1073741824, each once",
     [](Options& o, Name, Value v) { o.sizes = parse_sizes(v); }, For::operations},
    {"--dtype", "TYPE", "float32 (default), float64, int32 or uint8",
     [](Options& o, Name, Value v) { o.type = parse_data_type(v); }, For::operations},
    {"--reduction", "WHAT", "sum (default) or max",
     [](Options& o, Name, Value v) { o.reduction = parse_reduction(v); }, For::operations},
    {"--inside", "NAME", "of matrix and striping: backend of messages inside nodes",
     [](Options& o, Name, Value v) { o.inside = v; }, For::operations},
    {"--between", "NAME", "likewise of messages between nodes",
     [](Options& o, Name, Value v) { o.between = v; }, For::operations},
    {"--assemble", "NAME", "of striping: backend of its last part (that of --inside)",
     [](Options& o, Name, Value v) { o.assemble = v; }, For::operations},
    {"--timing", "HOW",
     "blocking (default): each operation is waited for; batched: so many are\n"
     "enqueued on the device, then waited for together",
     [](Options& o, Name n, Value v) { o.timing = kTimings.parse(n, v); }, For::operations},
    {"--timer", "CLOCK", "wall (default), or device: events on the device",
     [](Options& o, Name n, Value v) { o.timer = kTimers.parse(n, v); }, For::operations},
    {"--wait", "HOW",
     "stream (default): in a call of the GPU's runtime; poll: ask the stream and\n"
     "the library in turn, as nccl-tests does",
     [](Options& o, Name n, Value v) { o.backend_options.waiting = kWaitings.parse(n, v); },
     For::operations},
    {"--allocator", "WITH",
     "runtime (default): buffers are allocated with the GPU's runtime; library: with\n"
     "NCCL or RCCL, which can register them then, as nccl-tests does. xccl only",
     [](Options& o, Name n, Value v) { o.backend_options.allocator = kAllocators.parse(n, v); },
     For::operations},
    {"--graph", "yes|no",
     "with --timing batched: the batch is recorded once as a graph of the GPU's\n"
     "runtime, and a sample is one launch of it. xccl only (no)",
     [](Options& o, Name n, Value v) { o.graph = kYesOrNo.parse(n, v); }, For::operations},
    {"--operations", "N",
     "in one sample: with --timing batched 20; with blocking as many as it takes\n"
     "to be timed well, if none are named",
     [](Options& o, Name n, Value v) { o.operations = parse_count(n, v, 1); }, For::operations},
    {"--window", "N", "of stream: messages under way (64)",
     [](Options& o, Name n, Value v) { o.shape.window = parse_count(n, v, 1); }, For::operations},
    {"--group-size", "N",
     "of rail, asymmetric, symmetric, striping: ranks of a group, as a rule of a\n"
     "node (1)",
     [](Options& o, Name n, Value v) { o.shape.group_size = parse_count(n, v, 1); },
     For::operations},
    {"--active", "N", "of rail, asymmetric, symmetric: ranks of a group that send (1)",
     [](Options& o, Name n, Value v) { o.shape.active = parse_count(n, v, 1); }, For::operations},
    {"--direction", "WAY",
     "of these: outbound (default: from the first group), bidirectional,\n"
     "omnidirectional",
     [](Options& o, Name, Value v) { o.shape.direction = parse_direction(v); }, For::operations},
    {"--matrix", "FILE",
     "of matrix: lines \"FROM TO BYTES\"; they are scaled so that the largest\n"
     "message has the size asked for",
     [](Options& o, Name, Value v) { o.matrix = v; }, For::operations},
    {"--bind", "WHERE", "none (default), or gpu: run on the CPUs near this rank's GPU",
     [](Options& o, Name n, Value v) { o.bind = kBinds.parse(n, v); }, For::operations},
    {"--rotate", "yes|no",
     "do each operation at another of up to 64 places of the buffers, as\n"
     "nccl-tests does, so that caches hold less of its data (no)",
     [](Options& o, Name n, Value v) { o.rotate = kYesOrNo.parse(n, v); }, For::operations},
    {"--share-gpus", "yes|no", "let several ranks use one GPU, for tests (no)",
     [](Options& o, Name n, Value v) { o.shares_gpus = kYesOrNo.parse(n, v); }, For::operations},
    {"--records", "FILE", "where records go; without it to standard output",
     [](Options& o, Name, Value v) { o.records = v; }},
    {"--run-id", "ID", "copied into the header", [](Options& o, Name, Value v) { o.run_id = v; }},
    {"--env-names", "A[,B]", "variables whose values each rank reports in the header",
     [](Options& o, Name, Value v) { o.env_names = parse_names(v); }},
    {"--expect-ranks", "N", "do nothing unless so many ranks came up together (any number)",
     [](Options& o, Name n, Value v) { o.expect_ranks = parse_count(n, v, 1); }},
    {"--mode", "MODE",
     "measure (default), or trace: time nothing, do the operation at each size,\n"
     "and write a digest of sums that depends on the order of summation",
     [](Options& o, Name n, Value v) { o.mode = kModes.parse(n, v); }},
    {"--controls", "A[,B]",
     "with --mode trace: control variables (MPI_T) whose values each rank reports",
     [](Options& o, Name, Value v) { o.controls = parse_names(v); }, For::operations},
    {"--warmup", "N", "operations dropped before the first sample, beside the first call (5)",
     [](Options& o, Name n, Value v) { o.limits.warmup = parse_count(n, v, 0); }, For::operations},
    {"--min-samples", "N", "fewest samples a size (10)",
     [](Options& o, Name n, Value v) { o.limits.min_samples = parse_count(n, v, 1); },
     For::operations},
    {"--max-samples", "N", "most samples a size (200)",
     [](Options& o, Name n, Value v) { o.limits.max_samples = parse_count(n, v, 1); },
     For::operations},
    {"--relative-ci", "X",
     "stop when the 95 % confidence interval of the median is narrower than\n"
     "this share of it (0.01)",
     [](Options& o, Name n, Value v) { o.limits.relative_ci = parse_number(n, v, 0.0, 1.0); },
     For::operations},
    {"--time-cap", "SECONDS", "stop after this time once there are enough samples (0.05)",
     [](Options& o, Name n, Value v) { o.limits.time_cap_s = parse_number(n, v, 1e-6, 1e5); },
     For::operations},
    {"--seed", "N", "of the data pattern (1)",
     [](Options& o, Name n, Value v) {
       o.seed = parse_number<std::uint64_t>(n, v, 0, std::numeric_limits<std::int64_t>::max());
     },
     For::operations},
    {"--check", "full|none", "compare every received element, outside the timed part (full)",
     [](Options& o, Name n, Value v) { o.check = kChecks.parse(n, v); }, For::operations},
    {"--fault", "KIND@BYTES", "test only: hang, crash, wrong or babble at this size",
     [](Options& o, Name, Value v) { o.fault = parse_fault(v); }, For::operations},

    {"--end", "HOW",
     "clean (default), or quick: when all is written, MPI_Finalize and exit, without\n"
     "giving back GPU memory and communicators first",
     [](Options& o, Name n, Value v) { o.end = kEnds.parse(n, v); }, For::operations},
    {"--pattern", "PATTERN", "incast (all other ranks send to rank 0) or alltoall",
     [](Options& o, Name, Value v) { o.aggressor.pattern = parse_pattern(v); }, For::aggressor},
    {"--message", "BYTES", "from one rank to one other, 1 to 1073741824",
     [](Options& o, Name n, Value v) {
       o.aggressor.message = parse_number<std::size_t>(n, v, 1, kLargestSize);
     },
     For::aggressor},
    {"--burst", "SECONDS", "with --pause: send so long, be silent so long, in turn (never silent)",
     [](Options& o, Name n, Value v) { o.aggressor.bursts.burst_s = parse_span(n, v); },
     For::aggressor},
    {"--pause", "SECONDS", "seconds between bursts",
     [](Options& o, Name n, Value v) { o.aggressor.bursts.pause_s = parse_span(n, v); },
     For::aggressor},
    {"--stop-file", "FILE", "ends when this file is there",
     [](Options& o, Name, Value v) { o.aggressor.stop_file = v; }, For::aggress},
    {"--longest", "SECONDS", "ends after this time in any case (3600)",
     [](Options& o, Name n, Value v) { o.aggressor.longest_s = parse_span(n, v); }, For::aggressor},
    {"--aggressors", "RANKS",
     "these ranks measure nothing: they send beside the others for as long as those\n"
     "measure. last:N, every:N (every:2 is each second one) or a list (1,3,6-7).\n"
     "With --pattern, --message, --burst, --pause and --longest, as below",
     [](Options& o, Name, Value v) { o.aggressor.ranks = parse_aggressor_ranks(v); },
     For::operations},
    {"--aggressor-backend", "NAME", "what they send with (--backend)",
     [](Options& o, Name, Value v) { o.aggressor.backend = v; }, For::operations},
}};

constexpr const char* kUsage =
    "usage: mpiexec -n N commtune-bench --op OPERATION --sizes BYTES[,BYTES...] [option...]\n\n"
    "Measures one communication operation and writes JSON Lines.\n\n";
constexpr const char* kAggressUsage =
    "\nmpiexec -n N commtune-bench --mode aggress --pattern PATTERN --message BYTES [option...]\n\n"
    "Measures nothing: moves messages until SIGTERM or SIGINT, as traffic beside another run.\n\n";
constexpr const char* kLastUsage =
    "\nmpiexec -n N commtune-bench --mode serve [--expect-ranks N]\n\n"
    "Makes one run after the other, each in processes of its own: rank 0 reads them from\n"
    "standard input, a line each. Only for backends that do without MPI: xccl.\n\n"
    "  --records, --run-id, --env-names and --expect-ranks as above\n\n"
    "  --help, --version, --backends\n";
constexpr std::size_t kHelpColumn = 22;

/// The option and its value, and beside them, each line in the same column, the help.
std::string help_of(const Option& option) {
  std::string text = std::string("  ") + option.name + ' ' + option.value;
  text.append(text.size() + 1 < kHelpColumn ? kHelpColumn - text.size() : 2, ' ');
  for (const char* letter = option.help; *letter != '\0'; ++letter) {
    text += *letter;
    if (*letter == '\n') text.append(kHelpColumn, ' ');
  }
  return text + '\n';
}

std::string usage_text() {
  std::string measuring = kUsage;
  std::string aggressing = kAggressUsage;
  for (const Option& option : kOptions) {
    const bool is_of_aggressors = option.what == For::aggressor || option.what == For::aggress;
    (is_of_aggressors ? aggressing : measuring) += help_of(option);
  }
  return measuring + aggressing + kLastUsage;
}

const Option& find_option(const std::string& name) {
  std::string legal;
  for (const Option& option : kOptions) {
    if (name == option.name) return option;
    legal.append(legal.empty() ? "" : " ").append(option.name);
  }
  throw UsageError("unknown option '" + name + "'; options are: " + legal);
}

/// What a shared launch measures is said by its orders.
void check_serving(const Given& given) {
  for (const std::string& name : given) {
    if (name != "--mode" && name != "--expect-ranks") {
      throw UsageError(name + " is not for --mode serve: runs have it, each its own");
    }
  }
}

void check_modes(const Options& options, const Given& given) {
  const bool aggresses = options.mode == Mode::aggress;
  for (const Option& option : kOptions) {
    if (given.count(option.name) == 0) continue;
    if (aggresses && option.what == For::operations) {
      throw UsageError(std::string(option.name) + " is not for --mode aggress");
    }
    if (!aggresses && option.what == For::aggress) {
      throw UsageError(std::string(option.name) + " needs --mode aggress");
    }
    if (!aggresses && !has_aggressors(options) && option.what == For::aggressor) {
      throw UsageError(std::string(option.name) + " needs --mode aggress or --aggressors");
    }
  }
}

void check_whole(const Options& options, const Given& given) {
  if (options.mode == Mode::serve) return check_serving(given);
  check_modes(options, given);
  if (options.mode == Mode::aggress) {
    check_aggressor(given);
  } else {
    check_operation(options, given);
  }
}

std::string version_text() {
  const BuildInfo info = build_info();
  return "commtune-bench " + std::string(info.version) + " (" + info.compiler + ", build " +
         info.build_id + ")\n";
}

std::string backends_text() {
  std::string text;
  for (const std::string_view name : backend_names()) text.append(name).append("\n");
  return text;
}

}  // namespace

std::string_view word(Timing timing) { return kTimings.word(timing); }

std::string_view word(Timer timer) { return kTimers.word(timer); }

std::string_view word(Waiting waiting) { return kWaitings.word(waiting); }

std::string_view word(Allocator allocator) { return kAllocators.word(allocator); }

bool has_aggressors(const Options& options) {
  return options.aggressor.ranks.kind != AggressorRanks::Kind::none;
}

std::vector<Operation> operations_of(const Options& options) {
  std::vector<Operation> operations{options.operation};
  operations.insert(operations.end(), options.then.begin(), options.then.end());
  return operations;
}

void check_ranks(const Options& options, int ranks) {
  for (const Operation operation : operations_of(options)) {
    check_ranks(operation, ranks, options.shape);
  }
}

const std::string& aggressor_backend(const Options& options) {
  return options.aggressor.backend.empty() ? options.backend : options.aggressor.backend;
}

bool uses_gpu(const Options& options) {
  if (options.mode == Mode::aggress) return false;
  return options.backend != kHostBackend ||
         (has_aggressors(options) && aggressor_backend(options) != kHostBackend);
}

CommandLine parse_command_line(const std::vector<std::string>& arguments) {
  CommandLine line;
  Given given;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--help") return {{}, usage_text()};
    if (argument == "--version") return {{}, version_text()};
    if (argument == "--backends") return {{}, backends_text()};
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const Option& option = find_option(name);
    if (equals == std::string::npos && i + 1 == arguments.size()) {
      throw UsageError(name + " needs a value");
    }
    const std::string value =
        equals == std::string::npos ? arguments[++i] : argument.substr(equals + 1);
    option.set(line.options, name, value);
    given.insert(name);
  }
  check_whole(line.options, given);
  settle_timing(line.options);
  return line;
}

}  // namespace commtune
