#include "records/folder.h"

#include <dirent.h>

#include <memory>

namespace commtune {

std::vector<std::string> names_in(const std::string& folder) {
  struct Close {
    void operator()(DIR* open) const { closedir(open); }
  };
  const std::unique_ptr<DIR, Close> open(opendir(folder.c_str()));
  std::vector<std::string> names;
  if (open == nullptr) return names;
  while (const dirent* entry = readdir(open.get())) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  return names;
}

}  // namespace commtune
