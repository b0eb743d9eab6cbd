/// The NVLinks of a GPU.

#include "gpu/driver.h"

#if !COMMTUNE_WITH_HIP

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <tuple>
#include <vector>

#include "gpu/nvidia/nvml.h"
#include "records/json.h"

namespace commtune {

namespace {

constexpr unsigned kMostLinks = 64;        ///< more than any GPU has
constexpr unsigned kLinkCountField = 91;   ///< NVML_FI_DEV_NVLINK_LINK_COUNT
constexpr unsigned kLinkSpeedField = 164;  ///< NVML_FI_DEV_NVLINK_GET_SPEED, in MB/s

/// nvmlFieldValue_t, whose value is a union of numbers.
struct FieldValue {
  unsigned field = 0;
  unsigned scope = 0;  ///< which link
  long long time_us = 0;
  long long latency_us = 0;
  unsigned type = 0;
  int error = 0;
  union {
    double real;
    unsigned number;
    unsigned long long large;
  } value{0.0};
};
static_assert(sizeof(FieldValue) == 40);

/// nvmlPciInfo_t.
struct PciInfo {
  std::array<char, 16> short_address;
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned ids;
  unsigned subsystem_ids;
  std::array<char, 32> address;
};
static_assert(sizeof(PciInfo) == 68);

/// Links that end at the same place, and are equal.
struct Bundle {
  std::string to;       ///< gpu, switch, cpu, unknown
  std::string pci;      ///< of the other end; empty where it can't be told
  std::string version;  ///< of NVLink
  double speed_Bps;     ///< of one link, one direction, as the driver says; 0 where it doesn't
  unsigned links;

  auto kind() const { return std::tie(to, pci, version, speed_Bps); }
};

std::optional<unsigned> field(const Nvml& nvml, Nvml::Device device, unsigned id, unsigned link) {
  FieldValue value;
  value.field = id;
  value.scope = link;
  if (!nvml.call("nvmlDeviceGetFieldValues", device, 1, &value) || value.error != 0) {
    return std::nullopt;
  }
  return value.value.number;
}

/// nvmlIntNvLinkDeviceType_t in words.
std::string word_for(std::optional<unsigned> type) {
  constexpr std::array<const char*, 3> kWords{"gpu", "cpu", "switch"};
  return type && *type < kWords.size() ? kWords[*type] : "unknown";
}

/// nvmlNvlinkVersion_t in words.
std::string nvlink_version(std::optional<unsigned> version) {
  constexpr std::array<const char*, 8> kWords{"", "1.0", "2.0", "2.2", "3.0", "3.1", "4.0", "5.0"};
  return version && *version < kWords.size() ? kWords[*version] : "";
}

/// As the kernel writes it; empty where the driver says none, by ones in all places, as it does for
/// NVSwitches.
std::string address_of(std::optional<PciInfo> pci) {
  constexpr unsigned kNoDomain = ~0U;
  if (!pci || pci->domain == kNoDomain) return "";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.0", pci->domain, pci->bus, pci->device);
  return text.data();
}

/// What links that end at the same kind of thing have in common.
struct Make {
  std::string version;
  double speed_Bps;
};

/// Asks of one link after the other, and not again what it knows from one like it: a GPU has up to
/// 18 links, each question goes into the driver, and all ranks of a node ask at the same time.
class Asking {
 public:
  Asking(const Nvml& nvml, Nvml::Device device) : nvml_(nvml), device_(device) {}

  Bundle describe(unsigned link) {
    const std::string to =
        word_for(nvml_.ask<unsigned>("nvmlDeviceGetNvLinkRemoteDeviceType", device_, link));
    const auto [known, is_new] = makes_.try_emplace(to);
    if (is_new) known->second = make_of(link);
    return {to, end_of(to, link), known->second.version, known->second.speed_Bps, 1};
  }

 private:
  Make make_of(unsigned link) const {
    const auto megabytes = field(nvml_, device_, kLinkSpeedField, link);
    return {nvlink_version(nvml_.ask<unsigned>("nvmlDeviceGetNvLinkVersion", device_, link)),
            static_cast<double>(megabytes.value_or(0)) * 1e6};
  }

  /// A driver that has no address for one switch has none for the others.
  std::string end_of(const std::string& to, unsigned link) {
    const bool is_switch = to == "switch";
    if (is_switch && are_switches_nameless_) return "";
    std::string pci =
        address_of(nvml_.ask<PciInfo>("nvmlDeviceGetNvLinkRemotePciInfo_v2", device_, link));
    are_switches_nameless_ = are_switches_nameless_ || (is_switch && pci.empty());
    return pci;
  }

  const Nvml& nvml_;
  Nvml::Device device_;
  std::map<std::string, Make> makes_;  ///< by what is at the other end
  bool are_switches_nameless_ = false;
};

std::vector<Bundle> bundles(const Nvml& nvml, Nvml::Device device) {
  const unsigned links = std::min(field(nvml, device, kLinkCountField, 0).value_or(0), kMostLinks);
  Asking asking(nvml, device);
  std::vector<Bundle> found;
  for (unsigned link = 0; link < links; ++link) {
    if (nvml.ask<unsigned>("nvmlDeviceGetNvLinkState", device, link).value_or(0) == 0) continue;
    Bundle next = asking.describe(link);
    const auto same = std::find_if(found.begin(), found.end(), [&](const Bundle& bundle) {
      return bundle.kind() == next.kind();
    });
    if (same == found.end()) {
      found.push_back(std::move(next));
    } else {
      ++same->links;
    }
  }
  return found;
}

std::string text_or_null(const std::string& text) {
  return text.empty() ? "null" : json::quoted(text);
}

}  // namespace

std::string gpu_links_json(const std::string& pci) {
  const Nvml& nvml = Nvml::get();
  Nvml::Device const device = nvml.find(pci);
  if (device == nullptr) return "null";
  std::vector<std::string> entries;
  for (const Bundle& bundle : bundles(nvml, device)) {
    entries.push_back(
        json::Object()
            .text("to", bundle.to)
            .raw("pci", text_or_null(bundle.pci))
            .integer("links", bundle.links)
            .raw("version", text_or_null(bundle.version))
            .raw("link_Bps", bundle.speed_Bps > 0 ? json::number(bundle.speed_Bps) : "null")
            .str());
  }
  return json::array(entries);
}

}  // namespace commtune

#endif
