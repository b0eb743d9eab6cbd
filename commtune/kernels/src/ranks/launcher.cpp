#include "ranks/launcher.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace commtune {

namespace {

constexpr const char* kSlurmLocalRank = "SLURM_LOCALID";

/// Slurm's come last: in a job's script, and so in what another launcher starts from there, they
/// speak of the script.
constexpr std::array<const char*, 8> kLocalRank{
    "OMPI_COMM_WORLD_LOCAL_RANK",  // Open MPI
    "MPI_LOCALRANKID",             // MPICH's and Intel's mpiexec
    "MV2_COMM_WORLD_LOCAL_RANK",   // MVAPICH2's mpirun_rsh
    "MVP_COMM_WORLD_LOCAL_RANK",   // that of later MVAPICH
    "PALS_LOCAL_RANKID",           // HPE's mpiexec
    "PMI_LOCAL_RANK",              // the same, earlier; ALPS
    "FLUX_TASK_LOCAL_ID",          // Flux
    kSlurmLocalRank,               // srun
};

constexpr std::array<const char*, 6> kLocalRanks{
    "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE",
    "MVP_COMM_WORLD_LOCAL_SIZE",  "PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE",
};

/// The number that a text begins with; -1 if it begins otherwise.
int leading_number(std::string_view text) {
  int number = -1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc{} && number >= 0 ? number : -1;
}

/// The first of some variables that is set.
struct Told {
  std::string_view name;  ///< empty if none is
  int number = -1;        ///< -1 where its value is none
};

template <class Names>
Told first_told(const Names& names) {
  for (const char* name : names) {
    if (const char* value = std::getenv(name)) return {name, leading_number(value)};
  }
  return {};
}

/// Slurm says it for all nodes of a step: "4(x2),1" are four tasks on each of two nodes, and one.
int most_tasks(std::string_view list) {
  int most = 0;
  while (!list.empty()) {
    most = std::max(most, leading_number(list));
    const std::size_t comma = list.find(',');
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return most;
}

}  // namespace

int local_rank_from_launcher() { return first_told(kLocalRank).number; }

int local_ranks_from_launcher() {
  const Told told = first_told(kLocalRanks);
  if (!told.name.empty()) return std::max(told.number, 0);
  const char* tasks = std::getenv("SLURM_STEP_TASKS_PER_NODE");
  const bool is_srun = first_told(kLocalRank).name == kSlurmLocalRank;
  return is_srun && tasks != nullptr ? most_tasks(tasks) : 0;
}

}  // namespace commtune
