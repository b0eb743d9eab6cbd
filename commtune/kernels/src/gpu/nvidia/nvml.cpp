#include "gpu/nvidia/nvml.h"

#include <dlfcn.h>

namespace commtune {

Nvml::Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL)) {
  if (library_ != nullptr && !call("nvmlInit_v2")) library_ = nullptr;
}

const Nvml& Nvml::get() {
  static const Nvml nvml;
  return nvml;
}

void* Nvml::symbol(const char* name) const {
  return library_ == nullptr ? nullptr : dlsym(library_, name);
}

Nvml::Device Nvml::find(const std::string& pci) const {
  Device device = nullptr;
  return call("nvmlDeviceGetHandleByPciBusId_v2", pci.c_str(), &device) ? device : nullptr;
}

}  // namespace commtune
