#include "cli/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "backends/backend.h"
#include "build_info.h"
#include "cli/option_checks.h"
#include "cli/usage.h"
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

template <class Number>
Number parse_number(const std::string& option, const std::string& text, Number low, Number high) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stopped != end || !(value >= low && value <= high)) {
    const std::string range = std::to_string(low) + " to " + std::to_string(high);
    throw UsageError(option + ": '" + text + "' is not a number from " + range);
  }
  return value;
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

bool parse_check(const std::string& text) {
  if (text != "full" && text != "none") {
    throw UsageError("--check: '" + text + "' is neither full nor none");
  }
  return text == "full";
}

Mode parse_mode(const std::string& text) {
  if (text == "measure") return Mode::measure;
  if (text == "trace") return Mode::trace;
  if (text == "aggress") return Mode::aggress;
  throw UsageError("--mode: '" + text + "' is neither measure nor trace nor aggress");
}

Timing parse_timing(const std::string& text) {
  if (text == "blocking") return Timing::blocking;
  if (text == "batched") return Timing::batched;
  throw UsageError("--timing: '" + text + "' is neither blocking nor batched");
}

Timer parse_timer(const std::string& text) {
  if (text == "wall") return Timer::wall;
  if (text == "device") return Timer::device;
  throw UsageError("--timer: '" + text + "' is neither wall nor device");
}

Waiting parse_waiting(const std::string& text) {
  if (text == "stream") return Waiting::stream;
  if (text == "poll") return Waiting::poll;
  throw UsageError("--wait: '" + text + "' is neither stream nor poll");
}

Allocator parse_allocator(const std::string& text) {
  if (text == "runtime") return Allocator::runtime;
  if (text == "library") return Allocator::library;
  throw UsageError("--allocator: '" + text + "' is neither runtime nor library");
}

bool parse_yes(const std::string& option, const std::string& text) {
  if (text != "yes" && text != "no") {
    throw UsageError(option + ": '" + text + "' is neither yes nor no");
  }
  return text == "yes";
}

Bind parse_bind(const std::string& text) {
  if (text == "none") return Bind::none;
  if (text == "gpu") return Bind::gpu;
  throw UsageError("--bind: '" + text + "' is neither none nor gpu");
}

End parse_end(const std::string& text) {
  if (text == "clean") return End::clean;
  if (text == "quick") return End::quick;
  throw UsageError("--end: '" + text + "' is neither clean nor quick");
}

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

/// Operations of a batch, as in nccl-tests.
constexpr int kBatched = 20;

/// What an option is for: all, runs that do an operation at each size, aggressors by themselves or
/// beside a run, or only by themselves.
enum class For : unsigned char { all, operations, aggressor, aggress };

struct Option {
  const char* name;
  Setter set;
  For what = For::all;
};

using Name = const std::string&;
using Value = const std::string&;

constexpr std::array<Option, 46> kOptions{{
    {"--op", [](Options& o, Name, Value v) { o.operation = parse_operation(v); }, For::operations},
    {"--then", [](Options& o, Name, Value v) { o.then = parse_operations(v); }, For::operations},
    {"--backend", [](Options& o, Name, Value v) { o.backend = v; }, For::operations},
    {"--inside", [](Options& o, Name, Value v) { o.inside = v; }, For::operations},
    {"--between", [](Options& o, Name, Value v) { o.between = v; }, For::operations},
    {"--assemble", [](Options& o, Name, Value v) { o.assemble = v; }, For::operations},
    {"--timing", [](Options& o, Name, Value v) { o.timing = parse_timing(v); }, For::operations},
    {"--timer", [](Options& o, Name, Value v) { o.timer = parse_timer(v); }, For::operations},
    {"--wait", [](Options& o, Name, Value v) { o.backend_options.waiting = parse_waiting(v); },
     For::operations},
    {"--allocator",
     [](Options& o, Name, Value v) { o.backend_options.allocator = parse_allocator(v); },
     For::operations},
    {"--graph", [](Options& o, Name n, Value v) { o.graph = parse_yes(n, v); }, For::operations},
    {"--operations", [](Options& o, Name n, Value v) { o.operations = parse_count(n, v, 1); },
     For::operations},
    {"--window", [](Options& o, Name n, Value v) { o.shape.window = parse_count(n, v, 1); },
     For::operations},
    {"--group-size", [](Options& o, Name n, Value v) { o.shape.group_size = parse_count(n, v, 1); },
     For::operations},
    {"--active", [](Options& o, Name n, Value v) { o.shape.active = parse_count(n, v, 1); },
     For::operations},
    {"--direction", [](Options& o, Name, Value v) { o.shape.direction = parse_direction(v); },
     For::operations},
    {"--matrix", [](Options& o, Name, Value v) { o.matrix = v; }, For::operations},
    {"--bind", [](Options& o, Name, Value v) { o.bind = parse_bind(v); }, For::operations},
    {"--rotate", [](Options& o, Name n, Value v) { o.rotate = parse_yes(n, v); }, For::operations},
    {"--share-gpus", [](Options& o, Name n, Value v) { o.shares_gpus = parse_yes(n, v); },
     For::operations},
    {"--sizes", [](Options& o, Name, Value v) { o.sizes = parse_sizes(v); }, For::operations},
    {"--dtype", [](Options& o, Name, Value v) { o.type = parse_data_type(v); }, For::operations},
    {"--reduction", [](Options& o, Name, Value v) { o.reduction = parse_reduction(v); },
     For::operations},
    {"--records", [](Options& o, Name, Value v) { o.records = v; }},
    {"--run-id", [](Options& o, Name, Value v) { o.run_id = v; }},
    {"--env-names", [](Options& o, Name, Value v) { o.env_names = parse_names(v); }},
    {"--expect-ranks", [](Options& o, Name n, Value v) { o.expect_ranks = parse_count(n, v, 1); }},
    {"--mode", [](Options& o, Name, Value v) { o.mode = parse_mode(v); }},
    {"--controls", [](Options& o, Name, Value v) { o.controls = parse_names(v); }, For::operations},
    {"--warmup", [](Options& o, Name n, Value v) { o.limits.warmup = parse_count(n, v, 0); },
     For::operations},
    {"--min-samples",
     [](Options& o, Name n, Value v) { o.limits.min_samples = parse_count(n, v, 1); },
     For::operations},
    {"--max-samples",
     [](Options& o, Name n, Value v) { o.limits.max_samples = parse_count(n, v, 1); },
     For::operations},
    {"--relative-ci",
     [](Options& o, Name n, Value v) { o.limits.relative_ci = parse_number(n, v, 0.0, 1.0); },
     For::operations},
    {"--time-cap",
     [](Options& o, Name n, Value v) { o.limits.time_cap_s = parse_number(n, v, 1e-6, 1e5); },
     For::operations},
    {"--seed",
     [](Options& o, Name n, Value v) {
       o.seed = parse_number<std::uint64_t>(n, v, 0, std::numeric_limits<std::int64_t>::max());
     },
     For::operations},
    {"--check", [](Options& o, Name, Value v) { o.check = parse_check(v); }, For::operations},
    {"--fault", [](Options& o, Name, Value v) { o.fault = parse_fault(v); }, For::operations},

    {"--end", [](Options& o, Name, Value v) { o.end = parse_end(v); }, For::operations},
    {"--pattern", [](Options& o, Name, Value v) { o.aggressor.pattern = parse_pattern(v); },
     For::aggressor},
    {"--message",
     [](Options& o, Name n, Value v) {
       o.aggressor.message = parse_number<std::size_t>(n, v, 1, kLargestSize);
     },
     For::aggressor},
    {"--burst", [](Options& o, Name n, Value v) { o.aggressor.bursts.burst_s = parse_span(n, v); },
     For::aggressor},
    {"--pause", [](Options& o, Name n, Value v) { o.aggressor.bursts.pause_s = parse_span(n, v); },
     For::aggressor},
    {"--stop-file", [](Options& o, Name, Value v) { o.aggressor.stop_file = v; }, For::aggress},
    {"--longest", [](Options& o, Name n, Value v) { o.aggressor.longest_s = parse_span(n, v); },
     For::aggressor},
    {"--aggressors",
     [](Options& o, Name, Value v) { o.aggressor.ranks = parse_aggressor_ranks(v); },
     For::operations},
    {"--aggressor-backend", [](Options& o, Name, Value v) { o.aggressor.backend = v; },
     For::operations},
}};

const Option& find_option(const std::string& name) {
  std::string legal;
  for (const Option& option : kOptions) {
    if (name == option.name) return option;
    legal.append(legal.empty() ? "" : " ").append(option.name);
  }
  throw UsageError("unknown option '" + name + "'; options are: " + legal);
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

std::string_view word(Timing timing) { return timing == Timing::blocking ? "blocking" : "batched"; }

std::string_view word(Timer timer) { return timer == Timer::wall ? "wall" : "device"; }

std::string_view word(Waiting waiting) { return waiting == Waiting::stream ? "stream" : "poll"; }

std::string_view word(Allocator allocator) {
  return allocator == Allocator::runtime ? "runtime" : "library";
}

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
    if (argument == "--help") return {{}, std::string(usage())};
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
  Options& options = line.options;
  if (options.timing == Timing::batched && options.operations == 0) options.operations = kBatched;
  return line;
}

}  // namespace commtune
