#include "backends/staged/staged.h"

#include <map>
#include <utility>
#include <vector>

#include "backends/mpi/mpi.h"
#include "backends/own_messages.h"
#include "gpu/allocation.h"
#include "gpu/gpu.h"
#include "gpu/memory.h"
#include "gpu/stream.h"
#include "ranks/world.h"

namespace commtune {

namespace {

struct StagedCopy {
  void* to;
  const void* from;
  std::size_t bytes;
};

/// Copies out, the same on the host, copies in: each after the one before is complete.
class StagedAction final : public Action {
 public:
  StagedAction(const Stream& stream, std::vector<StagedCopy> out, std::unique_ptr<Action> on_host,
               std::vector<StagedCopy> in)
      : stream_(stream), out_(std::move(out)), on_host_(std::move(on_host)), in_(std::move(in)) {}

  void start() override {
    copy(out_, gpuMemcpyDeviceToHost);
    on_host_->start();
  }

  void wait() override {
    on_host_->wait();
    copy(in_, gpuMemcpyHostToDevice);
  }

 private:
  void copy(const std::vector<StagedCopy>& copies, decltype(gpuMemcpyDefault) kind) const {
    if (copies.empty()) return;
    for (const StagedCopy& each : copies) {
      COMMTUNE_GPU_CALL(gpuMemcpyAsync(each.to, each.from, each.bytes, kind, stream_.get()));
    }
    stream_.synchronize();
  }

  const Stream& stream_;
  std::vector<StagedCopy> out_;
  std::unique_ptr<Action> on_host_;
  std::vector<StagedCopy> in_;
};

class StagedBackend final : public Backend {
 public:
  explicit StagedBackend(const World& world)
      : world_(world),
        memory_(device_memory()),
        on_host_(make_mpi("mpi-staged", world, pinned_memory())) {}

  std::string_view name() const override { return "mpi-staged"; }
  Memory& memory() override { return *memory_; }

  std::unique_ptr<Action> exchange(const Exchange& messages, const Buffers& buffers, DataType type,
                                   Company company) override {
    const std::vector<OwnMessage> own = own_messages(messages, world_.rank());
    return staged(buffers, ranges_of(own, true), ranges_of(own, false), size_of(type),
                  [&](const Buffers& mirrors) {
                    return on_host_->exchange(messages, mirrors, type, company);
                  });
  }

  std::unique_ptr<Action> collective(const Layout& layout, const Buffers& buffers,
                                     Reduction reduction) override {
    return staged(
        buffers, ranges_of(layout, world_.rank(), true), ranges_of(layout, world_.rank(), false),
        size_of(layout.type),
        [&](const Buffers& mirrors) { return on_host_->collective(layout, mirrors, reduction); });
  }

 private:
  /// @param make makes the action between host memories; null if it has none
  template <class Make>
  std::unique_ptr<Action> staged(const Buffers& buffers, const std::vector<Range>& sent,
                                 const std::vector<Range>& received, std::size_t element,
                                 const Make& make) {
    const Buffers mirrors{mirror_of(buffers.send), mirror_of(buffers.received)};
    std::unique_ptr<Action> action = make(mirrors);
    if (!action) return nullptr;
    return std::make_unique<StagedAction>(
        stream_, copies_of(sent, element, mirrors.send, buffers.send), std::move(action),
        copies_of(received, element, buffers.received, mirrors.received));
  }

  static std::vector<StagedCopy> copies_of(const std::vector<Range>& ranges, std::size_t element,
                                           std::byte* to, const std::byte* from) {
    std::vector<StagedCopy> copies;
    for (const Range& range : ranges) {
      const std::size_t offset = range.offset * element;
      copies.push_back({to + offset, from + offset, range.count * element});
    }
    return copies;
  }

  /// The same place in page-locked memory, of which there is as much as the GPU's allocation has.
  std::byte* mirror_of(const std::byte* address) {
    const Allocation allocation = allocation_of(address);
    std::byte*& mirror = mirrors_[allocation.base];
    if (mirror == nullptr) mirror = on_host_->memory().allocate(allocation.bytes);
    return mirror + (address - allocation.base);
  }

  const World& world_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Backend> on_host_;
  std::map<const std::byte*, std::byte*> mirrors_;
  Stream stream_;
};

}  // namespace

std::unique_ptr<Backend> make_staged(const World& world) {
  return std::make_unique<StagedBackend>(world);
}

}  // namespace commtune
