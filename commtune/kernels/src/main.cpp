/// commtune-bench: measures one communication operation, see docs/benchmark.md.

#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "aggressor.h"
#include "backend.h"
#include "canary.h"
#include "cases.h"
#include "clock.h"
#include "controls.h"
#include "devices.h"
#include "ending.h"
#include "error.h"
#include "fault_injection.h"
#include "launcher.h"
#include "measure.h"
#include "options.h"
#include "placement.h"
#include "records.h"
#include "trace.h"
#include "world.h"

namespace commtune {
namespace {

/// The largest send and receive buffers of the run, bytes.
struct Space {
  std::size_t send = 0;
  std::size_t received = 0;
};

Space space_for(const Options& options, int ranks) {
  Space space;
  const std::size_t element = size_of(options.type);
  for (const std::size_t bytes : options.sizes) {
    const Layout layout = lay_out(options.operation, options.type, bytes, ranks, options.shape);
    space.send = std::max(space.send, layout.send_count * element);
    space.received = std::max(space.received, layout.receive_count * element);
  }
  return space;
}

Backends make_backends(const Options& options, const World& world) {
  Backends backends;
  backends.main = make_backend(options.backend, world);
  if (!options.inside.empty()) backends.inside = make_backend(options.inside, world);
  if (!options.between.empty()) backends.between = make_backend(options.between, world);
  for (Backend* other : {backends.inside.get(), backends.between.get()}) {
    if (other != nullptr && other->memory().name() != backends.main->memory().name()) {
      throw UsageError(std::string(other->name()) + " and " + std::string(backends.main->name()) +
                       " don't work on the same memory: name backends for the host or for GPUs");
    }
  }
  if (options.timer == Timer::device && backends.main->device_timer() == nullptr) {
    throw UsageError("--timer device: " + options.backend + " has no clock on a device");
  }
  if (options.timing == Timing::batched && !backends.main->enqueues()) {
    throw UsageError("--timing batched: " + options.backend + " enqueues nothing on a device");
  }
  return backends;
}

Bench make_bench(const Options& options, const World& world, const Placement& placement) {
  const Space space = space_for(options, world.size());
  Bench bench;
  bench.backends = make_backends(options, world);
  Memory& memory = bench.backends.main->memory();
  bench.buffers = {memory.allocate(space.send), memory.allocate(space.received)};
  bench.buffer_bytes = std::min(space.send, space.received);
  for (const RankPlace& rank : placement.ranks()) bench.node_of.push_back(rank.node);
  return bench;
}

bool uses_gpu(const Options& options) {
  return options.mode != Mode::aggress && options.backend != "mpi-host";
}

double longest_over_ranks(const World& world, double seconds) {
  std::vector<double> longest{seconds};
  world.max_to_first(longest);
  return longest[0];
}

void write_babble(RecordFile& records, const Options& options, std::size_t bytes) {
  const std::string piece = babble(options.fault, bytes);
  for (int i = 0; i < kBabblePieces && !piece.empty(); ++i) records.write_raw(piece);
}

Totals measure_all(Measurer& measurer, const Options& options, const Bench& bench,
                   bool oversubscribed, std::optional<RecordFile>& records) {
  Totals totals;
  const auto cases = cases_of(options, bench.backends, static_cast<int>(bench.node_of.size()));
  for (const std::size_t bytes : options.sizes) {
    if (records) write_babble(*records, options, bytes);
    for (const Case& one : cases) {
      if (!has_messages(options, bytes, one, bench.node_of)) continue;
      SizeResult result = measurer.measure(bytes, one.part, one.shape);
      result.pair = one.pair;
      if (records) records->write_line(measurement_record(result, oversubscribed));
      totals.wrong = totals.wrong || result.check.wrong > 0;
      totals.measure_s += result.elapsed_s;
      ++totals.measurements;
    }
  }
  return totals;
}

Totals trace_all(const Bench& bench, const World& world, const Options& options,
                 std::optional<RecordFile>& records) {
  Tracer tracer(bench, world, options);
  for (const std::size_t bytes : options.sizes) {
    const TraceResult result = tracer.trace(bytes);
    if (records) records->write_line(trace_record(result));
  }
  return {};
}

Totals measure_run(const Bench& bench, const World& world, const Clock& clock,
                   const Options& options, const Placement& placement,
                   std::optional<RecordFile>& records) {
  // Threads of a library that serves GPUs may disturb it: what a configuration can change must not
  // decide which runs are compared with each other.
  std::optional<Canary> canary;
  if (!uses_gpu(options)) {
    canary.emplace(world, placement, clock);
    canary->settle(world);
  }
  Measurer measurer(bench, world, clock, options, canary ? &*canary : nullptr);
  return measure_all(measurer, options, bench, placement.oversubscribed(), records);
}

RunFacts facts_of(const Options& options, const std::vector<std::string>& arguments,
                  const World& world, std::string_view backend) {
  RunFacts facts;
  facts.arguments = arguments;
  facts.backend = backend;
  facts.init_s = longest_over_ranks(world, world.init_s());
  facts.environments = world.gather(environment_json(options.env_names));
  if (!options.controls.empty()) facts.controls = world.gather(controls_json(options.controls));
  return facts;
}

/// Traffic until it is told to end, on every rank; returns the exit status.
int aggress(const Options& options, const std::vector<std::string>& arguments, const World& world,
            const Clock& clock) {
  const Placement placement(world);
  Aggressor aggressor(world, clock, options.aggressor, placement);
  const RunFacts facts = facts_of(options, arguments, world, "mpi-host");
  std::optional<RecordFile> records;
  if (world.is_first()) {
    records.emplace(options.records);
    records->write_line(aggressor_header_record(facts, options, placement, aggressor.window()));
  }
  bool sends = false;
  const Ending ending = aggressor.run([&records, &sends](const Traffic& traffic) {
    records->write_line(traffic_record(traffic));
    if (!sends) std::fputs("commtune-bench: sending\n", stderr);
    sends = true;
  });
  hurry();
  Totals totals;
  totals.elapsed_s = clock.now();
  totals.init_s = facts.init_s;
  if (records) records->write_line(aggressor_footer_record(totals, aggressor.traffic(), ending));
  return kExitOk;
}

/// Adds what is known of backends and GPUs.
RunFacts bench_facts(const Options& options, const std::vector<std::string>& arguments,
                     const World& world, const Bench& bench) {
  const Backend& main = *bench.backends.main;
  RunFacts facts = facts_of(options, arguments, world, main.name());
  facts.memory = bench.backends.main->memory().name();
  facts.library = main.library();
  facts.library_init_s = longest_over_ranks(world, main.init_s());
  if (uses_gpu(options)) facts.gpus = world.gather(device_facts_json());
  return facts;
}

/// The run, on every rank; returns the exit status.
int run(const Options& options, const std::vector<std::string>& arguments, const World& world,
        const Clock& clock) {
  check_ranks(options.operation, world.size(), options.shape);
  const Placement placement(world);
  if (uses_gpu(options)) {
    choose_device(placement.ranks()[static_cast<std::size_t>(world.rank())].local_rank,
                  options.shares_gpus);
  }
  const Bench bench = make_bench(options, world, placement);
  const RunFacts facts = bench_facts(options, arguments, world, bench);
  std::optional<RecordFile> records;
  if (world.is_first()) {
    records.emplace(options.records);
    records->write_line(header_record(facts, options, placement));
  }
  const bool on_gpus = uses_gpu(options) && options.mode == Mode::measure;
  const std::string before = on_gpus ? device_state_json() : "";
  Totals totals = options.mode == Mode::trace
                      ? trace_all(bench, world, options, records)
                      : measure_run(bench, world, clock, options, placement, records);
  if (on_gpus) {
    totals.gpus_before = world.gather(before);
    totals.gpus_after = world.gather(device_state_json());
  }
  totals.init_s = facts.init_s;
  totals.elapsed_s = clock.now();
  if (records) records->write_line(footer_record(totals));
  const ExitStatus status = world.from_first(totals.wrong) ? kExitWrongResult : kExitOk;
  if (options.end == End::quick) {
    records.reset();
    World::end_process(status);
  }
  return status;
}

/// A mistake in the arguments is every rank's; one of them says it. Before MPI is up, and where
/// it came up otherwise than the launcher meant, the rank is known only from the launcher's
/// variables.
bool speaks_for_all() {
  constexpr std::array<const char*, 4> kRankNames{"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK",
                                                  "SLURM_PROCID"};
  return std::all_of(kRankNames.begin(), kRankNames.end(), [](const char* name) {
    const char* rank = std::getenv(name);
    return rank == nullptr || std::string(rank) == "0";
  });
}

/// How long launchers need to pass on what a rank said, before the rank or its fellows end.
constexpr std::chrono::milliseconds kTimeToBeHeard{300};

int exit_of_all(ExitStatus status, const std::string& message, bool speak) {
  if (speak) {
    std::fprintf(stderr, "commtune-bench: %s\n", message.c_str());
  } else {
    // A launcher may end all ranks as soon as one has failed: that must be the one that spoke.
    std::this_thread::sleep_for(kTimeToBeHeard);
  }
  return status;
}

/// A launcher that the MPI library doesn't understand starts every rank as a world of its own,
/// whose times would look like those of a very fast network.
std::string wrong_world(int expected, int size) {
  const std::string found =
      size == 1 ? "each came up as a world of its own" : "this world has " + std::to_string(size);
  return "asked for were " + std::to_string(expected) + " ranks, but " + found +
         ": launcher and MPI library don't fit each other. srun needs --mpi=pmix for Open MPI and "
         "--mpi=pmi2 for MPICH; mpiexec must be the library's own";
}

int run_under_mpi(const CommandLine& line, const std::vector<std::string>& arguments, int* argc,
                  char*** argv, const Clock& clock) {
  const World world(argc, argv);
  const int expected = line.options.expect_ranks;
  if (expected != 0 && world.size() != expected) {
    return exit_of_all(kExitWrongWorld, wrong_world(expected, world.size()), speaks_for_all());
  }
  try {
    if (line.options.mode == Mode::aggress) {
      return aggress(line.options, arguments, world, clock);
    }
    Options options = line.options;
    if (!options.matrix.empty()) options.shape.flows = read_flows(world, options.matrix);
    return run(options, arguments, world, clock);
  } catch (const UsageError& error) {
    return exit_of_all(kExitUsage, error.what(), world.is_first());
  } catch (const std::exception& error) {
    // The other ranks may be waiting for this one for ever: all have to go.
    std::fprintf(stderr, "commtune-bench: rank %d: %s\n", world.rank(), error.what());
    std::this_thread::sleep_for(kTimeToBeHeard);
    MPI_Abort(MPI_COMM_WORLD, kExitFailure);
    return kExitFailure;
  }
}

}  // namespace
}  // namespace commtune

int main(int argc, char** argv) {
  const commtune::Clock clock;
  const std::vector<std::string> arguments(argv, argv + argc);
  try {
    const auto line = commtune::parse_command_line({arguments.begin() + 1, arguments.end()});
    if (!line.print.empty()) {
      std::fputs(line.print.c_str(), stdout);
      return commtune::kExitOk;
    }
    if (line.options.mode == commtune::Mode::aggress) {
      commtune::heed_signals(line.options.aggressor.longest_s);
    }
    if (commtune::uses_gpu(line.options)) {
      // Before MPI_Init: libraries that are aware of GPUs look there which one is ours.
      const int local_rank = commtune::local_rank_from_launcher();
      if (local_rank >= 0) commtune::choose_device(local_rank, line.options.shares_gpus);
      if (line.options.bind == commtune::Bind::gpu && local_rank >= 0) {
        commtune::stay_near_device();
      }
    }
    return commtune::run_under_mpi(line, arguments, &argc, &argv, clock);
  } catch (const commtune::UsageError& error) {
    return commtune::exit_of_all(commtune::kExitUsage, error.what(), commtune::speaks_for_all());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "commtune-bench: %s\n", error.what());
    return commtune::kExitFailure;
  }
}
