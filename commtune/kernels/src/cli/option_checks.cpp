#include "cli/option_checks.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "backends/backend.h"
#include "error.h"

namespace commtune {

namespace {

/// Operations of a batch, as in nccl-tests.
constexpr int kBatched = 20;

bool is_any_of(Operation operation, std::initializer_list<Operation> some) {
  return std::find(some.begin(), some.end(), operation) != some.end();
}

/// Options of some patterns are a mistake with the others.
void check_patterns(const Options& options, const Given& given) {
  using O = Operation;
  const O operation = options.operation;
  const bool grouped = is_any_of(operation, {O::rail, O::asymmetric, O::symmetric});
  const bool mixed = is_any_of(operation, {O::matrix, O::striping});
  const std::array<std::pair<const char*, bool>, 8> allowed{{
      {"--window", operation == O::stream},
      {"--group-size", grouped || operation == O::striping},
      {"--active", grouped},
      {"--direction", grouped},
      {"--matrix", operation == O::matrix},
      {"--inside", mixed},
      {"--between", mixed},
      {"--assemble", operation == O::striping},
  }};
  for (const auto& [name, is_allowed] : allowed) {
    if (given.count(name) == 0 || is_allowed) continue;
    throw UsageError(std::string(name) + " is not for --op " + std::string(word(operation)));
  }
  const bool on_stream = options.timing == Timing::batched || options.timer == Timer::device;
  const bool several =
      given.count("--inside") + given.count("--between") + given.count("--assemble") != 0;
  if (on_stream && several) {
    throw UsageError(
        "--timing batched and --timer device are for a single stream: not with --inside, "
        "--between or --assemble");
  }
  if (options.backend_options.allocator == Allocator::library && several) {
    throw UsageError(
        "--allocator library is for a single backend: not with --inside, --between or --assemble");
  }
  if (!uses_gpu(options) && (options.bind == Bind::gpu || options.shares_gpus)) {
    throw UsageError("--bind gpu and --share-gpus yes are for GPUs: --backend mpi-host uses none");
  }
  for (const std::string& other : {options.inside, options.between, options.assemble}) {
    const bool on_host = options.backend == kHostBackend;
    if (other.empty() || (other == kHostBackend) == on_host) continue;
    throw UsageError(other + " and " + options.backend +
                     " don't work on the same memory: name backends for the host or for GPUs");
  }
  if (operation == O::matrix && given.count("--matrix") == 0) {
    throw UsageError("matrix needs --matrix FILE");
  }
  if (grouped && options.shape.active > options.shape.group_size) {
    throw UsageError("--active is more than --group-size");
  }
  if (options.mode == Mode::trace && (grouped || mixed || operation == O::pairs)) {
    throw UsageError("--mode trace is not for --op " + std::string(word(operation)));
  }
}

/// What is measured after the operation has no options of its own, and is told from the others by
/// its name.
void check_then(const Options& options) {
  using O = Operation;
  if (options.then.empty()) return;
  if (options.mode == Mode::trace) throw UsageError("--then is not for --mode trace");
  std::vector<O> seen{options.operation};
  for (const O operation : options.then) {
    const std::string name(word(operation));
    if (is_any_of(operation, {O::rail, O::asymmetric, O::symmetric, O::striping, O::pairs,
                              O::matrix, O::stream})) {
      throw UsageError("--then: " + name + " has options of its own: give it to --op");
    }
    if (std::find(seen.begin(), seen.end(), operation) != seen.end()) {
      throw UsageError("--then: " + name + " is measured already");
    }
    seen.push_back(operation);
  }
}

}  // namespace

void check_aggressor(const Given& given) {
  if (given.count("--pattern") == 0) throw UsageError("--pattern is missing: incast or alltoall");
  if (given.count("--message") == 0) throw UsageError("--message is missing: give bytes");
  if (given.count("--burst") != given.count("--pause")) {
    throw UsageError("--burst and --pause need each other");
  }
}

void check_operation(const Options& options, const Given& given) {
  if (given.count("--op") == 0) throw UsageError("--op is missing: say which operation");
  if (options.sizes.empty()) throw UsageError("--sizes is missing: give sizes in bytes");
  if (options.graph && options.timing != Timing::batched) {
    throw UsageError("--graph yes launches batches as a whole: add --timing batched");
  }
  if (!options.controls.empty() && options.mode != Mode::trace) {
    throw UsageError("--controls needs --mode trace: reading them may change times");
  }
  if (options.fault && options.mode == Mode::trace) {
    throw UsageError("--fault is not for --mode trace, which checks nothing");
  }
  if (options.limits.min_samples > options.limits.max_samples) {
    throw UsageError("--min-samples is more than --max-samples");
  }
  // Any number of ranks serves here: only whether one element fits is asked.
  for (const std::size_t bytes : options.sizes) {
    lay_out(Operation::allreduce, options.type, bytes, 1);
  }
  check_patterns(options, given);
  check_then(options);
  if (has_aggressors(options)) {
    check_aggressor(given);
    if (options.mode != Mode::measure) throw UsageError("--aggressors is for --mode measure");
  } else if (given.count("--aggressor-backend") != 0) {
    throw UsageError("--aggressor-backend needs --aggressors");
  }
}

void settle_timing(Options& options) {
  if (options.timing == Timing::batched && options.operations == 0) options.operations = kBatched;
  if (options.mode != Mode::trace) return;
  // One by one: only how a rank waits is as in a measurement.
  options.timing = Timing::blocking;
  options.timer = Timer::wall;
  options.graph = options.rotate = false;
  options.operations = 0;
}

}  // namespace commtune
