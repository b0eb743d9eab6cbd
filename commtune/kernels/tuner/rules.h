#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

/// The file of rules: that of NVIDIA's example plugin, one rule a line,
///   collective,min_bytes,max_bytes,algorithm,protocol,channels,nodes,ranks[,pipe_ops[,registered]]
/// read strictly. A word that isn't known would be taken for another one by NVIDIA's plugin, and a
/// file that is cut short would leave sizes without a rule: here both make the file unusable.
namespace tuner {

/// By NCCL's numbers.
constexpr std::array<const char*, 5> kCollectives = {"broadcast", "reduce", "allgather",
                                                     "reducescatter", "allreduce"};
constexpr std::array<const char*, 7> kAlgorithms = {
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
constexpr int kCollnetDirect = 2;
constexpr int kNvls = 4;
constexpr std::array<const char*, 3> kProtocols = {"ll", "ll128", "simple"};

/// Matches every number of nodes, ranks and so on.
constexpr int kAny = -1;

struct Rule {
  int line = 0;  // in the file
  int collective = 0;
  uint64_t least_bytes = 0;  // both ends inclusive
  uint64_t most_bytes = 0;
  int algorithm = 0;
  int protocol = 0;
  int channels = 0;  // 0: as many as NCCL takes by itself
  int nodes = kAny;
  int ranks = kAny;
  int pipe_operations = kAny;
  int registered = kAny;
};

struct RuleFile {
  std::vector<Rule> rules;
  uint64_t digest = 0;  // of its bytes: equal where ranks read the same file
  bool has_crlf = false;
};

/// A file that can't be used, and why.
class Unusable : public std::runtime_error {
  using runtime_error::runtime_error;
};

/// Throws Unusable.
RuleFile read_rules(const std::string& path);

/// Throws Unusable. `text` is all of a file.
RuleFile parse_rules(const std::string& text);

}  // namespace tuner
