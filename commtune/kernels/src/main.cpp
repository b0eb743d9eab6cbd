/// commtune-bench: measures one communication operation, see docs/benchmark.md.

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "cli/exit.h"
#include "cli/options.h"
#include "error.h"
#include "interference/aggress.h"
#include "interference/run_beside.h"
#include "interference/termination.h"
#include "ranks/devices.h"
#include "ranks/launcher.h"
#include "ranks/placement.h"
#include "ranks/world.h"
#include "serving/serve.h"
#include "timing/clock.h"
#include "timing/run.h"

namespace commtune {
namespace {

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

/// A launcher that the MPI library doesn't understand starts every rank as a world of its own,
/// whose times would look like those of a very fast network.
std::string wrong_world(int expected, int size) {
  const std::string found =
      size == 1 ? "each came up as a world of its own" : "this world has " + std::to_string(size);
  return "asked for were " + std::to_string(expected) + " ranks, but " + found +
         ": launcher and MPI library don't fit each other. srun needs --mpi=pmix for Open MPI and "
         "--mpi=pmi2 for MPICH; mpiexec must be the library's own";
}

/// A run that nothing is beside.
int run_alone(Options options, const std::vector<std::string>& arguments, const World& world,
              const Clock& clock) {
  if (!options.matrix.empty()) options.shape.flows = read_flows(world, options.matrix);
  check_ranks(options, world.size());
  Placement places(world);
  const bool binds_late = settle_on_gpus(options, world, places);
  const Bench bench = make_bench(options, world, places);
  return run(options, arguments, {world, world, places, nullptr, binds_late}, bench, clock);
}

/// Chooses the GPU, and goes to the CPUs near it, where the launcher says this rank's place: before
/// MPI_Init, since libraries that are aware of GPUs look there which one is ours.
/// @return why it failed, for fail_together: other ranks, which may have GPUs, wait in MPI_Init
std::optional<UsageError> settle_early(const Options& options) {
  const int local_rank = local_rank_from_launcher();
  if (local_rank < 0 || !uses_gpu(options)) return std::nullopt;
  try {
    choose_device(local_rank, options.shares_gpus);
    if (options.bind == Bind::gpu) stay_near_device();
    return std::nullopt;
  } catch (const UsageError& error) {
    return error;
  } catch (const std::exception& error) {
    return UsageError(error.what(), kExitFailure);
  }
}

/// A run of a shared launch, in a process of its own. It is looked at here whether it fails: MPI,
/// which could tell the other ranks, belongs to the parent.
int run_served(const std::vector<std::string>& arguments, const World& world) {
  const Clock clock;
  try {
    const auto line = parse_command_line({arguments.begin() + 1, arguments.end()});
    if (!line.print.empty() || line.options.mode != Mode::measure) {
      throw UsageError("a shared launch measures, and nothing else");
    }
    fail_together(world, settle_early(line.options));
    return run_alone(line.options, arguments, world, clock);
  } catch (const UsageError& error) {
    return exit_of_all(error.status(), error.what(), world.is_first());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "commtune-bench: rank %d: %s\n", world.rank(), error.what());
    return kExitFailure;
  }
}

int run_under_mpi(const CommandLine& line, const std::vector<std::string>& arguments,
                  const std::optional<UsageError>& problem, int* argc, char*** argv,
                  const Clock& clock) {
  const World world(argc, argv);
  const int expected = line.options.expect_ranks;
  if (expected != 0 && world.size() != expected) {
    return exit_of_all(kExitWrongWorld, wrong_world(expected, world.size()), speaks_for_all());
  }
  try {
    fail_together(world, problem);
    if (line.options.mode == Mode::serve) return serve(world, run_served);
    if (line.options.mode == Mode::aggress) {
      return aggress(line.options, arguments, world, clock);
    }
    if (has_aggressors(line.options)) return run_beside(line.options, arguments, world, clock);
    return run_alone(line.options, arguments, world, clock);
  } catch (const UsageError& error) {
    return exit_of_all(error.status(), error.what(), world.is_first());
  } catch (const std::exception& error) {
    // The other ranks may be waiting for this one for ever: all have to go.
    std::fprintf(stderr, "commtune-bench: rank %d: %s\n", world.rank(), error.what());
    wait_to_be_heard();
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
    const auto problem = commtune::settle_early(line.options);
    return commtune::run_under_mpi(line, arguments, problem, &argc, &argv, clock);
  } catch (const commtune::UsageError& error) {
    return commtune::exit_of_all(error.status(), error.what(), commtune::speaks_for_all());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "commtune-bench: %s\n", error.what());
    return commtune::kExitFailure;
  }
}
