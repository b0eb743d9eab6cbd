#include "gpu/device.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "error.h"
#include "ranks/cpus.h"
#include "ranks/devices.h"
#include "ranks/launcher.h"
#include "ranks/nic.h"
#include "ranks/placement.h"
#include "records/json.h"
#include "timing/clock.h"

namespace commtune {

namespace {

constexpr int kNone = -1;

int& chosen() {
  static int device = kNone;
  return device;
}

/// Ranks whose GPUs have several NICs equally near take turns by their places on the node.
int& turn() {
  static int place = 0;
  return place;
}

double& start_s() {
  static double seconds = 0.0;
  return seconds;
}

int visible_devices() {
  int count = 0;
  const gpuError_t code = gpuGetDeviceCount(&count);
  if (code == gpuSuccess && count > 0) return count;
  std::string why = "none is visible";
  if (code != gpuSuccess) {
    static_cast<void>(gpuGetLastError());
    why = gpuGetErrorString(code);
  }
  throw Waived("there is no GPU here that this process can use: " + why);
}

std::string too_many(int ranks, int devices) {
  return std::to_string(ranks) + " ranks on a node that has " + std::to_string(devices) +
         " GPUs: each rank needs one of its own; start no more ranks a node than it has GPUs";
}

/// "13.0" for 13000; HIP's numbers have more digits for what comes last.
std::string version_in_words(int version) {
#if COMMTUNE_WITH_HIP
  return std::to_string(version / 10000000) + "." + std::to_string(version / 100000 % 100) + "." +
         std::to_string(version % 100000);
#else
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
#endif
}

std::string quoted_or_null(const std::string& text) {
  return text.empty() ? "null" : json::quoted(text);
}

std::optional<Nic> own_nic() { return nearest_nic(kSysfs, pci_of(chosen()), turn()); }

/// The memory next to the GPU; null where the kernel says that there is none (-1), or nothing.
std::string numa_node_json(const std::string& pci) {
  const std::string node = pci_file(pci, "numa_node");
  return node.empty() || node.front() == '-' ? "null" : node;
}

}  // namespace

std::string pci_file(const std::string& pci, const std::string& name) {
  return first_line(std::string(kSysfs) + "/bus/pci/devices/" + pci + "/" + name);
}

std::string pci_of(int device) {
  std::array<char, 32> address{};
  COMMTUNE_GPU_CALL(gpuDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), device));
  std::string pci = address.data();
  std::transform(pci.begin(), pci.end(), pci.begin(),
                 [](unsigned char digit) { return static_cast<char>(std::tolower(digit)); });
  return pci;
}

bool choose_device(int local_rank, bool shares) {
  if (chosen() != kNone) return false;
  const Clock clock;
  const int devices = visible_devices();
  int device = 0;  // where a site's wrapper shows each rank a single one, it has chosen
  if (shares) {
    device = std::max(local_rank, 0) % devices;
  } else if (devices > 1) {
    const int ranks = std::max(local_ranks_from_launcher(), local_rank + 1);
    if (ranks > devices) throw Waived(too_many(ranks, devices));
    device = std::max(local_rank, 0);
  }
  COMMTUNE_GPU_CALL(gpuSetDevice(device));
  // Libraries that are aware of GPUs look for the context, which the first real call makes.
  COMMTUNE_GPU_CALL(gpuFree(nullptr));
  chosen() = device;
  turn() = std::max(local_rank, 0);
  start_s() = clock.now();
  return true;
}

std::string device_identity() { return chosen() == kNone ? "" : gpu_instance(chosen()); }

double device_start_s() { return start_s(); }

void stay_near_device() {
  if (chosen() == kNone) return;
  const std::set<int> allowed = allowed_cpus();
  const std::set<int> near = parse_cpu_list(pci_file(pci_of(chosen()), "local_cpulist"));
  const std::optional<Nic> nic = own_nic();
  const std::set<int> near_nic = nic ? parse_cpu_list(nic->cpus) : std::set<int>{};
  const std::set<int> cpus = narrowed(allowed, near_both(common(allowed, near), near_nic));
  if (!cpus.empty()) run_on_cpus(cpus);
}

std::string device_facts_json() {
  if (chosen() == kNone) return "null";
  const int device = chosen();
  const std::string pci = pci_of(device);
  gpuDeviceProp properties{};
  COMMTUNE_GPU_CALL(gpuGetDeviceProperties(&properties, device));
  int runtime = 0;
  int supported = 0;
  COMMTUNE_GPU_CALL(gpuRuntimeGetVersion(&runtime));
  COMMTUNE_GPU_CALL(gpuDriverGetVersion(&supported));
  return json::Object()
      .integer("index", static_cast<std::uint64_t>(device))
      .text("name", properties.name)
      .raw("uuid", quoted_or_null(gpu_uuid(properties, pci)))
      .text("pci", pci)
      .text("architecture", gpu_architecture(properties))
      .integer("multiprocessors", static_cast<std::uint64_t>(properties.multiProcessorCount))
      .integer("memory_bytes", properties.totalGlobalMem)
      .raw("numa_node", numa_node_json(pci))
      .raw("local_cpus", quoted_or_null(pci_file(pci, "local_cpulist")))
      .text("kind", COMMTUNE_WITH_HIP ? "hip" : "cuda")
      .text("runtime", version_in_words(runtime))
      .raw("driver", quoted_or_null(gpu_driver_version()))
      .text("driver_supports", version_in_words(supported))
      .raw("links", device_links_json())
      .str();
}

std::string device_state_json() {
  return chosen() == kNone ? "null" : gpu_state_json(pci_of(chosen()));
}

std::string device_nic_json() {
  const std::optional<Nic> nic = chosen() == kNone ? std::nullopt : own_nic();
  return nic ? json::quoted(nic->name) : "null";
}

std::string device_links_json() {
  return chosen() == kNone ? "null" : gpu_links_json(pci_of(chosen()));
}

}  // namespace commtune
