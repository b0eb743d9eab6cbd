#include <algorithm>
#include <array>
#include <string>

#include "backends/backend.h"
#include "backends/mpi/mpi.h"
#include "error.h"
#if COMMTUNE_WITH_GPU
#include "backends/ipc/ipc.h"
#include "backends/staged/staged.h"
#include "gpu/memory.h"
#endif
#if COMMTUNE_WITH_XCCL
#include "backends/xccl/xccl.h"
#endif

namespace commtune {

#if COMMTUNE_WITH_TESTS
std::unique_ptr<Backend> make_test_backend(const World& world);
#endif

namespace {

using Factory = std::unique_ptr<Backend> (*)(const World&, BackendOptions);

struct Entry {
  std::string_view name;
  Factory make;
};

constexpr std::array kEntries{
    Entry{"mpi-host", [](const World& world,
                         BackendOptions) { return make_mpi("mpi-host", world, host_memory()); }},
#if COMMTUNE_WITH_GPU
    Entry{"mpi-device",
          [](const World& world, BackendOptions) {
            return make_mpi("mpi-device", world, device_memory());
          }},
    Entry{"mpi-staged", [](const World& world, BackendOptions) { return make_staged(world); }},
    Entry{"ipc-put",
          [](const World& world, BackendOptions) { return make_ipc(world, IpcDirection::put); }},
    Entry{"ipc-get",
          [](const World& world, BackendOptions) { return make_ipc(world, IpcDirection::get); }},
#endif
#if COMMTUNE_WITH_XCCL
    Entry{"xccl", [](const World& world,
                     BackendOptions backend_options) { return make_xccl(world, backend_options); }},
#elif COMMTUNE_WITH_TESTS
    // Stands in for a library that does without MPI, where there is no GPU.
    Entry{"xccl", [](const World& world, BackendOptions) { return make_test_backend(world); }},
#endif
};

}  // namespace

/// Also those that this executable was built without.
constexpr std::array<std::string_view, 6> kAllNames{kHostBackend, "mpi-device", "mpi-staged",
                                                    "ipc-put",    "ipc-get",    "xccl"};

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names;
  names.reserve(kEntries.size());
  for (const Entry& entry : kEntries) names.push_back(entry.name);
  return names;
}

std::unique_ptr<Backend> make_backend(std::string_view name, const World& world,
                                      BackendOptions backend_options) {
  std::string known;
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.make(world, backend_options);
    known.append(known.empty() ? "" : ", ").append(entry.name);
  }
  const std::string why =
      "this executable has no backend '" + std::string(name) + "'; it has: " + known;
  if (std::find(kAllNames.begin(), kAllNames.end(), name) != kAllNames.end()) throw Waived(why);
  throw UsageError(why);
}

}  // namespace commtune
