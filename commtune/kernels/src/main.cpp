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
#include "clock.h"
#include "controls.h"
#include "ending.h"
#include "error.h"
#include "fault_injection.h"
#include "measure.h"
#include "options.h"
#include "placement.h"
#include "records.h"
#include "trace.h"
#include "world.h"

namespace commtune {
namespace {

BackendSpace space_for(const Options& options, int ranks) {
  BackendSpace space{0, 0, options.reduction};
  const std::size_t element = size_of(options.type);
  for (const std::size_t bytes : options.sizes) {
    const Layout layout = lay_out(options.operation, options.type, bytes, ranks);
    space.send_bytes = std::max(space.send_bytes, layout.send_count * element);
    space.receive_bytes = std::max(space.receive_bytes, layout.receive_count * element);
  }
  return space;
}

double longest_init(const World& world) {
  std::vector<double> longest{world.init_s()};
  world.max_to_first(longest);
  return longest[0];
}

void write_babble(RecordFile& records, const Options& options, std::size_t bytes) {
  const std::string piece = babble(options.fault, bytes);
  for (int i = 0; i < kBabblePieces && !piece.empty(); ++i) records.write_raw(piece);
}

Totals measure_all(Measurer& measurer, const Options& options, bool oversubscribed,
                   std::optional<RecordFile>& records) {
  Totals totals;
  for (const std::size_t bytes : options.sizes) {
    if (records) write_babble(*records, options, bytes);
    const SizeResult result = measurer.measure(bytes);
    if (records) records->write_line(measurement_record(result, oversubscribed));
    totals.wrong = totals.wrong || result.check.wrong > 0;
    totals.measure_s += result.elapsed_s;
    ++totals.measurements;
  }
  return totals;
}

Totals trace_all(Backend& backend, const World& world, const Options& options,
                 std::optional<RecordFile>& records) {
  Tracer tracer(backend, world, options);
  for (const std::size_t bytes : options.sizes) {
    const TraceResult result = tracer.trace(bytes);
    if (records) records->write_line(trace_record(result));
  }
  return {};
}

Totals measure_run(Backend& backend, const World& world, const Clock& clock, const Options& options,
                   const Placement& placement, std::optional<RecordFile>& records) {
  Canary canary(world, placement, clock);
  canary.settle(world);
  Measurer measurer(backend, world, clock, options, canary);
  return measure_all(measurer, options, placement.oversubscribed(), records);
}

RunFacts facts_of(const Options& options, const std::vector<std::string>& arguments,
                  const World& world, std::string_view backend) {
  RunFacts facts{arguments,
                 backend,
                 longest_init(world),
                 world.gather(environment_json(options.env_names)),
                 {}};
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
  const Totals totals{0, false, clock.now(), facts.init_s, 0.0};
  if (records) records->write_line(aggressor_footer_record(totals, aggressor.traffic(), ending));
  return kExitOk;
}

/// The run, on every rank; returns the exit status.
int run(const Options& options, const std::vector<std::string>& arguments, const World& world,
        const Clock& clock) {
  if (between_two_ranks(options.operation) && world.size() < 2) {
    throw UsageError(std::string(word(options.operation)) + " needs at least 2 ranks");
  }
  const auto backend = make_backend(world, space_for(options, world.size()));
  const Placement placement(world);
  const RunFacts facts = facts_of(options, arguments, world, backend->name());
  std::optional<RecordFile> records;
  if (world.is_first()) {
    records.emplace(options.records);
    records->write_line(header_record(facts, options, placement));
  }
  Totals totals = options.mode == Mode::trace
                      ? trace_all(*backend, world, options, records)
                      : measure_run(*backend, world, clock, options, placement, records);
  totals.init_s = facts.init_s;
  totals.elapsed_s = clock.now();
  if (records) records->write_line(footer_record(totals));
  return world.from_first(totals.wrong) ? kExitWrongResult : kExitOk;
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
    return run(line.options, arguments, world, clock);
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
    return commtune::run_under_mpi(line, arguments, &argc, &argv, clock);
  } catch (const commtune::UsageError& error) {
    return commtune::exit_of_all(commtune::kExitUsage, error.what(), commtune::speaks_for_all());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "commtune-bench: %s\n", error.what());
    return commtune::kExitFailure;
  }
}
