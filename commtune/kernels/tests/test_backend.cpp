/// A backend that does without MPI of its own, on host memory: messages go by the ranks' transport.
/// Its times mean nothing.

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "backends/own_messages.h"
#include "ranks/world.h"

namespace commtune {

namespace {

class TransportAction final : public Action {
 public:
  TransportAction(Transport& transport, std::vector<OwnMessage> messages, const Buffers& buffers,
                  std::size_t element)
      : transport_(transport),
        messages_(std::move(messages)),
        buffers_(buffers),
        element_(element) {}

  void start() override {
    for (const OwnMessage& own : messages_) {
      std::byte* const data =
          (own.sends ? buffers_.send : buffers_.received) + own.offset * element_;
      if (own.sends) {
        transport_.send(data, own.count * element_, own.peer);
      } else {
        transport_.receive(data, own.count * element_, own.peer);
      }
    }
  }

  void wait() override {}

 private:
  Transport& transport_;
  std::vector<OwnMessage> messages_;
  Buffers buffers_;
  std::size_t element_;
};

class TestBackend final : public Backend {
 public:
  explicit TestBackend(const World& world) : world_(world), memory_(host_memory()) {}

  std::string_view name() const override { return "xccl"; }
  Memory& memory() override { return *memory_; }

  std::unique_ptr<Action> exchange(const Exchange& messages, const Buffers& buffers, DataType type,
                                   Company /*company*/) override {
    return std::make_unique<TransportAction>(
        world_.transport(), own_messages(messages, world_.rank()), buffers, size_of(type));
  }

  std::unique_ptr<Action> collective(const Layout& /*layout*/, const Buffers& /*buffers*/,
                                     Reduction /*reduction*/) override {
    return nullptr;
  }

 private:
  const World& world_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace

std::unique_ptr<Backend> make_test_backend(const World& world) {
  return std::make_unique<TestBackend>(world);
}

}  // namespace commtune
