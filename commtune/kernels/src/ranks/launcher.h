#pragma once

namespace commtune {

/// This process's place among those of its node, from the launcher's variables; -1 if none says.
int local_rank_from_launcher();

/// Processes on the node that has most of them, from the launcher's variables; 0 if none says.
int local_ranks_from_launcher();

}  // namespace commtune
