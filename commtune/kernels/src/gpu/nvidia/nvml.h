#pragma once

#include <optional>
#include <string>

namespace commtune {

/// NVML, NVIDIA's library that tells of GPUs; it belongs to the driver, and is looked for when the
/// program runs. Only what is used of its public interface is declared here.
class Nvml {
 public:
  /// A GPU, as NVML knows it; null where NVML doesn't.
  using Device = void*;

  /// Set up at the first call. It stays so until the process ends.
  static const Nvml& get();

  Device find(const std::string& pci) const;

  /// Calls a function by its name; false where there is none of this name, or it fails.
  template <class... Arguments>
  bool call(const char* name, Arguments... arguments) const {
    auto* const function = reinterpret_cast<int (*)(Arguments...)>(symbol(name));
    return function != nullptr && function(arguments...) == 0;
  }

  /// What a function that has the parameters (device, ..., result) says.
  template <class Value, class... Arguments>
  std::optional<Value> ask(const char* name, Device device, Arguments... arguments) const {
    Value value{};
    if (device == nullptr || !call(name, device, arguments..., &value)) return std::nullopt;
    return value;
  }

 private:
  Nvml();
  void* symbol(const char* name) const;

  void* library_;
};

}  // namespace commtune
