#pragma once

#include <optional>
#include <set>
#include <string>

namespace commtune {

/// An RDMA device.
struct Nic {
  std::string name;  ///< "mlx5_0", "cxi0"
  std::string cpus;  ///< near it, in the kernel's list form; empty where the kernel doesn't say
};

/// Where the kernel describes devices.
constexpr const char* kSysfs = "/sys";

/// The RDMA device nearest to a PCI device, among those with a port that is up: the one that shares
/// most PCI bridges with it, then one of its NUMA node. None where there is none.
/// @param sysfs the folder that kSysfs is on a running system
/// @param pci as the kernel writes it: "0000:1b:00.0"
/// @param turn which one of several equally near ones, in the order of their names; beyond the last
///   from the first on
std::optional<Nic> nearest_nic(const std::string& sysfs, const std::string& pci, int turn);

/// CPUs near a GPU that are near its NIC, too; all near the GPU where none are.
std::set<int> near_both(const std::set<int>& gpu, const std::set<int>& nic);

/// First line of a file; empty where there is none.
std::string first_line(const std::string& path);

}  // namespace commtune
