#include "backends/ipc/ipc_flags.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "ranks/placement.h"
#include "ranks/world.h"
#include "timing/clock.h"

namespace commtune {

namespace {

/// The same on all ranks, and no other run's: also not that of another set of flags in this one.
std::string common_name(const World& world) {
  static int made = 0;
  const auto seconds = static_cast<long long>(time(nullptr));
  return world.from_first("/commtune-flags-" + std::to_string(getpid()) + "-" +
                          std::to_string(seconds) + "-" + std::to_string(made++));
}

}  // namespace

IpcFlags::IpcFlags(const World& world, const Placement& placement) {
  const std::vector<RankPlace>& places = placement.ranks();
  const RankPlace& own = places[static_cast<std::size_t>(world.rank())];
  for (const RankPlace& place : places) {
    local_ranks_.push_back(place.local_rank);
    if (place.node == own.node && place.local_rank > 0) ++size_;
  }
  const std::string name = common_name(world) + "-" + std::to_string(own.node);
  const bool creates = own.local_rank == 0;
  std::optional<UsageError> problem;
  if (creates) problem = map(name, true);
  try {
    fail_together(world, problem);
    if (!creates) problem = map(name, false);
    fail_together(world, problem);
  } catch (...) {
    if (creates) shm_unlink(name.c_str());
    if (flags_ != nullptr) munmap(flags_, size_ * size_ * sizeof(FlagPair));
    throw;
  }
  // All have mapped it: it needs no name any more.
  if (creates) shm_unlink(name.c_str());
}

IpcFlags::~IpcFlags() {
  if (flags_ != nullptr) munmap(flags_, size_ * size_ * sizeof(FlagPair));
}

/// Returns what went wrong; nothing if nothing did.
std::optional<UsageError> IpcFlags::map(const std::string& name, bool create) {
  const std::size_t bytes = size_ * size_ * sizeof(FlagPair);
  const auto problem = [&name](int code) {
    return UsageError(name + " in /dev/shm: " + std::strerror(code), kExitFailure);
  };
  const int file = shm_open(name.c_str(), create ? O_RDWR | O_CREAT | O_EXCL : O_RDWR, 0600);
  if (file < 0) return problem(errno);
  // Zeros; and a failure here, where there is no room, and not when a page is touched.
  int code = create ? posix_fallocate(file, 0, static_cast<off_t>(bytes)) : 0;
  if (code == 0) {
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
      code = errno;
    } else {
      flags_ = static_cast<FlagPair*>(memory);
    }
  }
  close(file);
  return code == 0 ? std::nullopt : std::make_optional(problem(code));
}

FlagPair& IpcFlags::between(int mover, int owner) const {
  const auto local = [this](int rank) {
    return static_cast<std::size_t>(local_ranks_[static_cast<std::size_t>(rank)]);
  };
  return flags_[local(mover) * size_ + local(owner)];
}

}  // namespace commtune
