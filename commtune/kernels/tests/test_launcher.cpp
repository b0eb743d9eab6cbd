#include <cstdlib>
#include <initializer_list>
#include <utility>

#include "harness.h"
#include "ranks/launcher.h"

using namespace commtune;

namespace {

/// The launcher's variables, those of this test's own launcher taken away.
class Environment {
 public:
  Environment(std::initializer_list<std::pair<const char*, const char*>> variables) {
    clear();
    for (const auto& [name, value] : variables) setenv(name, value, 1);
  }
  ~Environment() { clear(); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  static void clear() {
    for (const char* name :
         {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALRANKID",
          "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE",
          "MVP_COMM_WORLD_LOCAL_RANK", "MVP_COMM_WORLD_LOCAL_SIZE", "PALS_LOCAL_RANKID",
          "PALS_LOCAL_SIZE", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE", "FLUX_TASK_LOCAL_ID",
          "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"}) {
      unsetenv(name);
    }
  }
};

}  // namespace

TEST(without_a_launcher_nothing_is_known) {
  const Environment none({});
  EXPECT(local_rank_from_launcher() == -1);
  EXPECT(local_ranks_from_launcher() == 0);
}

TEST(every_launcher_says_the_local_rank) {
  for (const char* name :
       {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK",
        "MVP_COMM_WORLD_LOCAL_RANK", "PALS_LOCAL_RANKID", "PMI_LOCAL_RANK", "FLUX_TASK_LOCAL_ID",
        "SLURM_LOCALID"}) {
    const Environment one({{name, "3"}});
    EXPECT(local_rank_from_launcher() == 3);
  }
}

TEST(the_local_size_is_known_from_most_launchers) {
  for (const char* name :
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE",
        "MVP_COMM_WORLD_LOCAL_SIZE", "PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"}) {
    const Environment one({{name, "8"}});
    EXPECT(local_ranks_from_launcher() == 8);
  }
}

TEST(slurm_says_the_largest_number_of_tasks_of_a_step) {
  const auto most = [](const char* tasks) {
    const Environment step({{"SLURM_LOCALID", "0"}, {"SLURM_STEP_TASKS_PER_NODE", tasks}});
    return local_ranks_from_launcher();
  };
  EXPECT(most("4") == 4);
  EXPECT(most("4(x2)") == 4);
  EXPECT(most("1,4(x12),2") == 4);
  EXPECT(most("10,9") == 10);
  EXPECT(most("") == 0);
}

TEST(an_mpiexec_in_a_job_script_knows_better_than_slurm) {
  const Environment both({{"SLURM_LOCALID", "0"},
                          {"SLURM_STEP_TASKS_PER_NODE", "1"},
                          {"MPI_LOCALRANKID", "2"},
                          {"MPI_LOCALNRANKS", "4"}});
  EXPECT(local_rank_from_launcher() == 2);
  EXPECT(local_ranks_from_launcher() == 4);
  const Environment without_size(
      {{"SLURM_LOCALID", "0"}, {"SLURM_STEP_TASKS_PER_NODE", "1"}, {"FLUX_TASK_LOCAL_ID", "2"}});
  EXPECT(local_rank_from_launcher() == 2);
  EXPECT(local_ranks_from_launcher() == 0);
}

TEST(what_is_no_number_says_nothing) {
  const Environment odd({{"MPI_LOCALRANKID", "first"}, {"MPI_LOCALNRANKS", "-4"}});
  EXPECT(local_rank_from_launcher() == -1);
  EXPECT(local_ranks_from_launcher() == 0);
}
