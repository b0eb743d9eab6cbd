#include "ranks/placement.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "ranks/cpus.h"
#include "ranks/world.h"

namespace commtune {

namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

/// Differs between machines that happen to have the same name; empty where it can't be read.
std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id;
}

/// In one line; empty where none is told.
std::string told_node() {
  const char* const told = std::getenv(kNodeVariable);
  std::string line = told != nullptr ? told : "";
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

std::set<int> read_cpus(std::istream& in) {
  std::set<int> cpus;
  for (int cpu = 0; in >> cpu;) cpus.insert(cpu);
  return cpus;
}

std::string own_place() {
  std::ostringstream out;
  out << host_name() << '\n' << boot_id() << '\n' << told_node() << '\n' << getpid();
  for (const int cpu : allowed_cpus()) out << ' ' << cpu;
  return out.str();
}

}  // namespace

std::string cpu_list(const std::set<int>& cpus) {
  std::string list;
  for (auto first = cpus.begin(); first != cpus.end();) {
    auto next = first;
    int last = *first;
    for (++next; next != cpus.end() && *next == last + 1; ++next) last = *next;
    if (!list.empty()) list += ',';
    list += std::to_string(*first);
    if (last != *first) list += "-" + std::to_string(last);
    first = next;
  }
  return list;
}

void number_nodes(const std::vector<std::string>& node_names, std::vector<RankPlace>& ranks) {
  std::map<std::string, int> numbers;
  std::map<int, int> taken;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const int fresh = static_cast<int>(numbers.size());
    ranks[rank].node = numbers.try_emplace(node_names[rank], fresh).first->second;
    ranks[rank].local_rank = taken[ranks[rank].node]++;
  }
}

bool outnumber_cpus(const std::vector<RankPlace>& ranks) {
  std::map<int, std::set<int>> cpus;
  std::map<int, std::size_t> count;
  for (const RankPlace& rank : ranks) {
    cpus[rank.kernel].insert(rank.cpus.begin(), rank.cpus.end());
    ++count[rank.kernel];
  }
  return std::any_of(count.begin(), count.end(),
                     [&](const auto& kernel) { return kernel.second > cpus[kernel.first].size(); });
}

Placement::Placement(const World& world) {
  std::vector<std::string> machines;
  std::vector<std::string> nodes;
  std::map<std::string, int> kernels;
  std::string all;
  for (const std::string& place : world.gather(own_place())) all += place + '\n';
  std::istringstream lines(world.from_first(all));
  for (int i = 0; i < world.size(); ++i) {
    RankPlace rank;
    std::string boot;
    std::string told;
    std::string numbers;
    std::getline(lines, rank.host);
    std::getline(lines, boot);
    std::getline(lines, told);
    std::getline(lines, numbers);
    std::istringstream in(numbers);
    in >> rank.pid;
    rank.cpus = read_cpus(in);
    const int fresh = static_cast<int>(kernels.size());
    rank.kernel = kernels.try_emplace(boot.empty() ? rank.host : boot, fresh).first->second;
    machines.push_back(rank.host + ' ' + boot);
    nodes.push_back(machines.back() + ' ' + told);
    ranks_.push_back(std::move(rank));
  }
  number_nodes(machines, ranks_);
  for (RankPlace& rank : ranks_) {
    rank.machine = rank.node;
    rank.machine_rank = rank.local_rank;
  }
  number_nodes(nodes, ranks_);
}

Placement Placement::first(int ranks) const {
  Placement placement;
  placement.ranks_.assign(ranks_.begin(), ranks_.begin() + ranks);
  return placement;
}

int Placement::nodes() const {
  int nodes = 0;
  for (const RankPlace& rank : ranks_) nodes = std::max(nodes, rank.node + 1);
  return nodes;
}

bool Placement::emulates_nodes() const {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const RankPlace& rank) { return rank.node != rank.machine; });
}

bool Placement::oversubscribed() const { return outnumber_cpus(ranks_); }

int Placement::neighbour_of_first() const {
  for (std::size_t rank = 1; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].machine == ranks_[0].machine) return static_cast<int>(rank);
  }
  return 0;
}

}  // namespace commtune
