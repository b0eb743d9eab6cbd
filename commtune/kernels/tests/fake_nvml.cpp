#include "fake_nvml.h"

#include <cstdio>
#include <cstring>

namespace {

constexpr int kSuccess = 0;
constexpr int kNotFound = 6;

int the_gpu = 0;

const fake_nvml::Link* called(const char* name, unsigned link) {
  ++fake_nvml::calls()[name];
  return link < fake_nvml::links().size() ? &fake_nvml::links()[link] : nullptr;
}

int answer(unsigned value, unsigned* result) {
  *result = value;
  return kSuccess;
}

/// The parts of nvmlFieldValue_t and nvmlPciInfo_t that are used, at their places.
struct FieldValue {
  unsigned field, scope;
  char between[20];
  int error;
  unsigned number;
  unsigned rest;
};
static_assert(sizeof(FieldValue) == 40);

struct PciInfo {
  char short_address[16];
  unsigned domain, bus, device;
  char rest[40];
};
static_assert(sizeof(PciInfo) == 68);

}  // namespace

namespace fake_nvml {

std::vector<Link>& links() {
  static std::vector<Link> all;
  return all;
}

std::map<std::string, int>& calls() {
  static std::map<std::string, int> counts;
  return counts;
}

}  // namespace fake_nvml

extern "C" {

int nvmlInit_v2() { return kSuccess; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* pci, void** device) {
  if (std::strcmp(pci, fake_nvml::kAddress) != 0) return kNotFound;
  *device = &the_gpu;
  return kSuccess;
}

int nvmlDeviceGetFieldValues(void*, int count, FieldValue* value) {
  const fake_nvml::Link* link = called("nvmlDeviceGetFieldValues", value->scope);
  const bool is_count = value->field == 91;
  value->error = count == 1 && (is_count || (value->field == 164 && link)) ? kSuccess : kNotFound;
  if (value->error != kSuccess) return kSuccess;
  value->number = is_count ? static_cast<unsigned>(fake_nvml::links().size()) : link->speed_MBps;
  return kSuccess;
}

int nvmlDeviceGetNvLinkState(void*, unsigned number, unsigned* result) {
  const auto* link = called("nvmlDeviceGetNvLinkState", number);
  return link ? answer(link->is_active ? 1 : 0, result) : kNotFound;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned number, unsigned* result) {
  const auto* link = called("nvmlDeviceGetNvLinkRemoteDeviceType", number);
  return link ? answer(link->to, result) : kNotFound;
}

int nvmlDeviceGetNvLinkVersion(void*, unsigned number, unsigned* result) {
  const auto* link = called("nvmlDeviceGetNvLinkVersion", number);
  return link ? answer(link->version, result) : kNotFound;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void*, unsigned number, PciInfo* result) {
  const auto* link = called("nvmlDeviceGetNvLinkRemotePciInfo_v2", number);
  if (!link) return kNotFound;
  const bool is_named = link->bus != fake_nvml::kNoBus;
  result->domain = is_named ? 0 : ~0U;
  result->bus = link->bus;
  result->device = is_named ? 0 : ~0U;
  return kSuccess;
}

}  // extern "C"
