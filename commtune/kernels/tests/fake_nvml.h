#pragma once

#include <map>
#include <string>
#include <vector>

/// A library of the name and the functions by which NVML is asked of a GPU's NVLinks. What it says
/// is set here, and every call is counted.
namespace fake_nvml {

/// NVML's numbers: what is at the other end, and versions.
constexpr unsigned kGpu = 0;
constexpr unsigned kCpu = 1;
constexpr unsigned kSwitch = 2;
constexpr unsigned kNvlink3 = 4;
constexpr unsigned kNvlink4 = 6;

struct Link {
  bool is_active;
  unsigned to;
  unsigned bus;  ///< of the PCI address at the other end; kNoBus: all of it is ones
  unsigned version;
  unsigned speed_MBps;
};
constexpr unsigned kNoBus = ~0U;

/// Those of its only GPU.
std::vector<Link>& links();

/// Calls by the functions' names, and of nvmlDeviceGetFieldValues.
std::map<std::string, int>& calls();

constexpr const char* kAddress = "0000:1b:00.0";

}  // namespace fake_nvml
