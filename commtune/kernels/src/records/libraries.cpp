#include "records/libraries.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <set>

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

/// A version as text, from a function without arguments.
std::string ask_for_text(void* function) {
  const char* const said = reinterpret_cast<const char* (*)()>(function)();
  return said == nullptr ? "" : said;
}

/// The same as libfabric says it.
std::string ask_for_number(void* function) {
  return unpacked_version(reinterpret_cast<unsigned (*)()>(function)());
}

/// A library that can be asked for its version.
struct Asked {
  std::string_view name;
  std::string_view stem;
  const char* function;
  std::string (*ask)(void* function);
};
constexpr std::array<Asked, 3> kAsked{{
    {"libfabric", "libfabric", "fi_version", ask_for_number},
    {"ucc", "libucc", "ucc_get_version_string", ask_for_text},
    {"ucx", "libucp", "ucp_get_version_string", ask_for_text},
}};

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Behind the stem is the suffix, or what a wheel adds to a name: libucc_tl_ucp.so is a plugin.
const Asked* asked_of(std::string_view path) {
  const std::string_view name = file_name(path);
  const auto* const found = std::find_if(kAsked.begin(), kAsked.end(), [&](const Asked& asked) {
    const std::size_t end = asked.stem.size();
    return name.size() > end && name.rfind(asked.stem, 0) == 0 &&
           (name[end] == '.' || name[end] == '-');
  });
  return found == kAsked.end() ? nullptr : found;
}

/// Empty where it isn't loaded, or doesn't say.
std::string version_of(const Asked& asked, const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr) return "";
  void* const function = dlsym(library, asked.function);
  std::string version = function == nullptr ? "" : asked.ask(function);
  dlclose(library);
  return version;
}

int collect(dl_phdr_info* info, std::size_t /*size*/, void* paths) {
  if (info->dlpi_name != nullptr && is_communication_library(info->dlpi_name)) {
    static_cast<std::vector<std::string>*>(paths)->emplace_back(info->dlpi_name);
  }
  return 0;
}

}  // namespace

bool is_communication_library(std::string_view path) {
  const std::string_view name = file_name(path);
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

std::map<std::string, std::string> library_versions(const std::vector<std::string>& paths) {
  std::map<std::string, std::string> versions;
  std::set<std::string> several;
  for (const std::string& path : paths) {
    const Asked* const asked = asked_of(path);
    if (asked == nullptr) continue;
    const std::string version = version_of(*asked, path);
    if (version.empty()) continue;
    const auto [known, is_new] = versions.emplace(asked->name, version);
    if (!is_new && known->second != version) several.emplace(asked->name);
  }
  for (const std::string& name : several) versions.erase(name);
  return versions;
}

std::string_view library_with_version(std::string_view path) {
  const Asked* const asked = asked_of(path);
  return asked == nullptr ? std::string_view{} : asked->name;
}

std::string unpacked_version(unsigned packed) {
  return std::to_string(packed >> 16U) + "." + std::to_string(packed & 0xFFFFU);
}

}  // namespace commtune
