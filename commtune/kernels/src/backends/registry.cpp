#include <array>
#include <string>

#include "backend.h"
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

namespace {

using Maker = std::unique_ptr<Backend> (*)(const World&, Ways);

struct Entry {
  std::string_view name;
  Maker make;
};

constexpr std::array kEntries{
    Entry{"mpi-host",
          [](const World& world, Ways) { return make_mpi("mpi-host", world, host_memory()); }},
#if COMMTUNE_WITH_GPU
    Entry{"mpi-device",
          [](const World& world, Ways) { return make_mpi("mpi-device", world, device_memory()); }},
    Entry{"mpi-staged", [](const World& world, Ways) { return make_staged(world); }},
    Entry{"ipc-put", [](const World& world, Ways) { return make_ipc(world, IpcDirection::put); }},
    Entry{"ipc-get", [](const World& world, Ways) { return make_ipc(world, IpcDirection::get); }},
#endif
#if COMMTUNE_WITH_XCCL
    Entry{"xccl", [](const World& world, Ways ways) { return make_xccl(world, ways); }},
#endif
};

}  // namespace

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names;
  names.reserve(kEntries.size());
  for (const Entry& entry : kEntries) names.push_back(entry.name);
  return names;
}

std::unique_ptr<Backend> make_backend(std::string_view name, const World& world, Ways ways) {
  std::string known;
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.make(world, ways);
    known.append(known.empty() ? "" : ", ").append(entry.name);
  }
  throw UsageError("this executable has no backend '" + std::string(name) + "'; it has: " + known);
}

}  // namespace commtune
