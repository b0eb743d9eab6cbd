/// What AMD's driver says of a GPU, in the kernel's own files: they need no library, whose
/// structures change from version to version.

#include "gpu/device.h"

#if COMMTUNE_WITH_HIP

#include <fstream>
#include <initializer_list>
#include <optional>

#include "records/folder.h"
#include "records/json.h"

namespace commtune {

namespace {

std::optional<double> read_number(const std::string& file) {
  double value = 0;
  std::ifstream in(file);
  return in >> value ? std::optional(value) : std::nullopt;
}

/// The folder with what the GPU's sensors say; empty where there is none.
std::string sensors_of(const std::string& pci) {
  const std::string folder = "/sys/bus/pci/devices/" + pci + "/hwmon";
  for (const std::string& name : names_in(folder)) return folder + "/" + name;
  return "";
}

/// The first of some sensors that is there; null if none is.
std::string sensor_json(const std::string& sensors, std::initializer_list<const char*> names,
                        double unit) {
  for (const char* name : names) {
    if (const auto value = read_number(sensors + "/" + name)) return json::number(*value * unit);
  }
  return "null";
}

/// A count of errors in the GPU's memory: the file has lines "ue: 0" (uncorrected), "ce: 0".
std::string errors_json(const std::string& pci, const std::string& kind) {
  std::ifstream file("/sys/bus/pci/devices/" + pci + "/ras/umc_err_count");
  std::string word;
  std::uint64_t count = 0;
  while (file >> word >> count) {
    if (word == kind) return std::to_string(count);
  }
  return "null";
}

}  // namespace

std::string gpu_state_json(const std::string& pci) {
  const std::string sensors = sensors_of(pci);
  return json::Object()
      .raw("sm_clock_MHz", sensor_json(sensors, {"freq1_input"}, 1e-6))
      .raw("memory_clock_MHz", sensor_json(sensors, {"freq2_input"}, 1e-6))
      .raw("throttle", "null")
      .raw("temperature_C", sensor_json(sensors, {"temp2_input", "temp1_input"}, 1e-3))
      .raw("power_W", sensor_json(sensors, {"power1_average", "power1_input"}, 1e-6))
      .raw("ecc", "null")
      .raw("ecc_corrected", errors_json(pci, "ce:"))
      .raw("ecc_uncorrected", errors_json(pci, "ue:"))
      .str();
}

/// Which GPUs are connected is in the description of the system.
std::string gpu_links_json(const std::string& /*pci*/) { return "null"; }

std::string gpu_driver_version() {
  std::ifstream file("/sys/module/amdgpu/version");
  std::string version;
  file >> version;
  return version;
}

std::string gpu_uuid(const gpuDeviceProp& /*properties*/, const std::string& pci) {
  const std::string id = pci_file(pci, "unique_id");
  return id.empty() ? "" : "GPU-" + id;
}

std::string gpu_instance(int device) { return pci_of(device); }

std::string gpu_architecture(const gpuDeviceProp& properties) { return properties.gcnArchName; }

}  // namespace commtune

#endif
