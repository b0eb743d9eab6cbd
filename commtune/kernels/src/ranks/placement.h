#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace commtune {

class World;

/// CPUs in the kernel's list form: "0-3,8".
std::string cpu_list(const std::set<int>& cpus);

/// Where one rank runs.
struct RankPlace {
  int node = 0;          ///< numbered in order of first appearance
  int local_rank = 0;    ///< order of ranks on the node
  int machine = 0;       ///< numbered likewise; several nodes where kNodeVariable makes them
  int machine_rank = 0;  ///< order of ranks on the machine
  int kernel = 0;  ///< numbered likewise; containers that pass for nodes share one, and its CPUs
  std::string host;
  long pid = 0;
  std::set<int> cpus;
};

/// Ranks of a machine with different values of it are on different nodes, as NCCL and RCCL have it.
constexpr const char* kNodeVariable = "NCCL_HOSTID";

/// Where every rank runs. Ranks share a machine if they share its name and its boot identifier, and
/// a node if they share kNodeVariable, too, as a rule unset.
/// All ranks get the same answer; nothing of it goes through the library's own idea of nodes.
class Placement {
 public:
  explicit Placement(const World& world);

  /// That of the first ranks only: nodes have the same numbers, and so have ranks on them.
  Placement first(int ranks) const;

  const std::vector<RankPlace>& ranks() const { return ranks_; }
  int nodes() const;

  /// Whether some machine is several nodes.
  bool emulates_nodes() const;

  /// Whether ranks under some kernel outnumber the CPUs that they may use together.
  bool oversubscribed() const;

  /// The other rank that shares rank 0's machine and comes first on it; 0 if there is none.
  int neighbour_of_first() const;

 private:
  Placement() = default;

  std::vector<RankPlace> ranks_;
};

/// Assigns node numbers and local ranks from what tells nodes apart, in rank order.
void number_nodes(const std::vector<std::string>& node_names, std::vector<RankPlace>& ranks);

/// See Placement::oversubscribed.
bool outnumber_cpus(const std::vector<RankPlace>& ranks);

}  // namespace commtune
