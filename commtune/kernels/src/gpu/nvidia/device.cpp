/// What NVIDIA's driver says of a GPU.

#include "gpu/device.h"

#if !COMMTUNE_WITH_HIP

#include <cuda.h>
#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <string_view>
#include <vector>

#include "gpu/nvidia/nvml.h"
#include "records/json.h"

namespace commtune {

namespace {

// Values of NVML's enumerations.
constexpr unsigned kSmClock = 1;
constexpr unsigned kMemoryClock = 2;
constexpr unsigned kOnTheGpu = 0;  ///< the only temperature sensor
constexpr unsigned kCorrected = 0;
constexpr unsigned kUncorrected = 1;
constexpr unsigned kSinceDriverStart = 0;

struct Reason {
  unsigned long long bit;
  std::string_view word;
};

/// Why clocks are lower than they could be. That the GPU has nothing to do (bit 1) is none.
constexpr std::array<Reason, 8> kReasons{{
    {0x2, "applications-clocks"},
    {0x4, "power-cap"},
    {0x8, "hardware-slowdown"},
    {0x10, "sync-boost"},
    {0x20, "software-thermal"},
    {0x40, "hardware-thermal"},
    {0x80, "power-brake"},
    {0x100, "display-clock"},
}};

std::string throttle_json(const Nvml& nvml, Nvml::Device device) {
  auto bits = nvml.ask<unsigned long long>("nvmlDeviceGetCurrentClocksEventReasons", device);
  if (!bits) {  // its name in drivers before 535
    bits = nvml.ask<unsigned long long>("nvmlDeviceGetCurrentClocksThrottleReasons", device);
  }
  if (!bits) return "null";
  std::vector<std::string> words;
  for (const Reason& reason : kReasons) {
    if ((*bits & reason.bit) != 0) words.push_back(json::quoted(reason.word));
  }
  return json::array(words);
}

template <class Value>
std::string number_or_null(const std::optional<Value>& value, double unit = 1.0) {
  return value ? json::number(static_cast<double>(*value) * unit) : "null";
}

std::optional<unsigned long long> ecc_errors(const Nvml& nvml, Nvml::Device device, unsigned kind) {
  return nvml.ask<unsigned long long>("nvmlDeviceGetTotalEccErrors", device, kind,
                                      kSinceDriverStart);
}

/// With hyphens, as people know it.
std::string in_words(const CUuuid& uuid) {
  std::string words;
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) words += '-';
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
    words += digits.data();
  }
  return words;
}

std::string ecc_json(const Nvml& nvml, Nvml::Device device) {
  unsigned now = 0;
  unsigned after_reboot = 0;
  if (device == nullptr || !nvml.call("nvmlDeviceGetEccMode", device, &now, &after_reboot)) {
    return "null";
  }
  return now != 0 ? "true" : "false";
}

}  // namespace

std::string gpu_state_json(const std::string& pci) {
  const Nvml& nvml = Nvml::get();
  Nvml::Device const device = nvml.find(pci);
  const auto clock = [&](unsigned domain) {
    return number_or_null(nvml.ask<unsigned>("nvmlDeviceGetClockInfo", device, domain));
  };
  const auto temperature = nvml.ask<unsigned>("nvmlDeviceGetTemperature", device, kOnTheGpu);
  const auto milliwatts = nvml.ask<unsigned>("nvmlDeviceGetPowerUsage", device);
  return json::Object()
      .raw("sm_clock_MHz", clock(kSmClock))
      .raw("memory_clock_MHz", clock(kMemoryClock))
      .raw("throttle", throttle_json(nvml, device))
      .raw("temperature_C", number_or_null(temperature))
      .raw("power_W", number_or_null(milliwatts, 1e-3))
      .raw("ecc", ecc_json(nvml, device))
      .raw("ecc_corrected", number_or_null(ecc_errors(nvml, device, kCorrected)))
      .raw("ecc_uncorrected", number_or_null(ecc_errors(nvml, device, kUncorrected)))
      .str();
}

std::string gpu_driver_version() {
  std::array<char, 96> version{};
  const bool told = Nvml::get().call("nvmlSystemGetDriverVersion", version.data(),
                                     static_cast<unsigned>(version.size() - 1));
  return told ? version.data() : "";
}

std::string gpu_uuid(const gpuDeviceProp& properties, const std::string& /*pci*/) {
  return "GPU-" + in_words(properties.uuid);
}

std::string gpu_instance(int device) {
  // Instances have their GPU's PCI address, and what the runtime says of them may be that GPU's
  // UUID. The driver, which the runtime has loaded, tells them apart.
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return "";
  const auto get = reinterpret_cast<CUresult (*)(CUdevice*, int)>(dlsym(driver, "cuDeviceGet"));
  const auto get_uuid =
      reinterpret_cast<CUresult (*)(CUuuid*, CUdevice)>(dlsym(driver, "cuDeviceGetUuid_v2"));
  CUdevice handle = 0;
  CUuuid uuid{};
  const bool is_told = get != nullptr && get_uuid != nullptr &&
                       get(&handle, device) == CUDA_SUCCESS &&
                       get_uuid(&uuid, handle) == CUDA_SUCCESS;
  return is_told ? in_words(uuid) : "";
}

std::string gpu_architecture(const gpuDeviceProp& properties) {
  return "sm_" + std::to_string(properties.major) + std::to_string(properties.minor);
}

}  // namespace commtune

#endif
