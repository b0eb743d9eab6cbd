#include "ranks/nic.h"

#include <stdlib.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "ranks/cpus.h"
#include "records/folder.h"

namespace commtune {

namespace {

/// Where devices are that read and write memory by themselves: those of InfiniBand's interface,
/// which RoCE and EFA have, too, and Slingshot's.
constexpr std::array kKinds{"/class/infiniband/", "/class/cxi/"};

struct Candidate {
  std::string name;
  std::string folder;
};

/// A path without links: of a PCI device, the bridges on the way to it. Empty where there is none.
std::string without_links(const std::string& path) {
  struct FreePath {
    void operator()(char* text) const { free(text); }  // NOLINT(*-no-malloc)
  };
  const std::unique_ptr<char, FreePath> found(realpath(path.c_str(), nullptr));
  return found ? found.get() : "";
}

/// How many folders two paths share from the root on.
std::ptrdiff_t shared_folders(const std::string& one, const std::string& other) {
  const auto differs = std::mismatch(one.begin(), one.end(), other.begin(), other.end()).first;
  return std::count(one.begin(), differs, '/');
}

bool is_up(const std::string& port) {
  const std::string state = first_line(port + "/state");
  return state.empty() || state.find("ACTIVE") != std::string::npos;
}

/// Slingshot's devices have no folder of ports.
bool has_port_that_is_up(const std::string& device) {
  const std::vector<std::string> ports = names_in(device + "/ports");
  return ports.empty() || std::any_of(ports.begin(), ports.end(), [&](const std::string& port) {
           return is_up(device + "/ports/" + port);
         });
}

/// mlx5_10 comes after mlx5_9.
bool comes_before(const std::string& one, const std::string& other) {
  return std::make_pair(one.size(), one) < std::make_pair(other.size(), other);
}

/// In the order of names.
std::vector<Candidate> candidates_in(const std::string& sysfs) {
  std::vector<Candidate> all;
  for (const char* kind : kKinds) {
    const std::string folder = sysfs + kind;
    for (const std::string& name : names_in(folder)) all.push_back({name, folder + name});
  }
  std::sort(all.begin(), all.end(), [](const Candidate& one, const Candidate& other) {
    return comes_before(one.name, other.name);
  });
  return all;
}

}  // namespace

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<Nic> nearest_nic(const std::string& sysfs, const std::string& pci, int turn) {
  const std::string own = without_links(sysfs + "/bus/pci/devices/" + pci);
  if (own.empty()) return std::nullopt;
  const std::string numa = first_line(own + "/numa_node");
  using Nearness = std::pair<std::ptrdiff_t, bool>;
  Nearness nearest{-1, false};
  std::vector<Nic> found;
  for (const auto& [name, folder] : candidates_in(sysfs)) {
    const std::string path = without_links(folder + "/device");
    if (path.empty() || !has_port_that_is_up(folder)) continue;
    const Nearness nearness{shared_folders(own, path), first_line(path + "/numa_node") == numa};
    if (nearness < nearest) continue;
    if (nearness > nearest) found.clear();
    nearest = nearness;
    found.push_back({name, first_line(path + "/local_cpulist")});
  }
  if (found.empty()) return std::nullopt;
  return found[static_cast<std::size_t>(turn) % found.size()];
}

std::set<int> near_both(const std::set<int>& gpu, const std::set<int>& nic) {
  const std::set<int> both = common(gpu, nic);
  return both.empty() ? gpu : both;
}

}  // namespace commtune
