#include "libraries.h"

#include <link.h>

#include <algorithm>
#include <array>

namespace commtune {

namespace {

/// Beginnings of file names.
constexpr std::array<std::string_view, 25> kStems{
    "libmpi",   "libmpich",   "libpmpi", "libopen-pal", "libopen-rte", "libpmi",   "libpmix",
    "libprrte", "libucp",     "libuct",  "libucs",      "libucm",      "libucc",   "libfabric",
    "libefa",   "libibverbs", "librdma", "libpsm",      "libcxi",      "libxpmem", "libhcoll",
    "libsharp", "libmpcp",    "libnuma", "libhwloc",
};
constexpr std::array<std::string_view, 4> kProviderEnds{"-fi.so", "libnccl", "librccl", "libcuda"};

int collect(dl_phdr_info* info, std::size_t /*size*/, void* paths) {
  if (info->dlpi_name != nullptr && is_communication_library(info->dlpi_name)) {
    static_cast<std::vector<std::string>*>(paths)->emplace_back(info->dlpi_name);
  }
  return 0;
}

}  // namespace

bool is_communication_library(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return std::any_of(kStems.begin(), kStems.end(),
                     [&](std::string_view stem) { return name.rfind(stem, 0) == 0; }) ||
         std::any_of(kProviderEnds.begin(), kProviderEnds.end(), [&](std::string_view part) {
           return name.find(part) != std::string_view::npos;
         });
}

std::vector<std::string> communication_libraries() {
  std::vector<std::string> paths;
  dl_iterate_phdr(collect, &paths);
  return paths;
}

}  // namespace commtune
