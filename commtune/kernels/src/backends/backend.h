#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "backends/backend_options.h"
#include "backends/memories.h"
#include "operations/messages.h"
#include "operations/operations.h"

namespace commtune {

class World;

/// Where a communication reads and writes; in the backend's memory.
struct Buffers {
  std::byte* send;
  std::byte* received;
};

/// A communication that is ready to go: whatever can be decided before the clock runs was decided.
class Action {
 public:
  virtual ~Action() = default;

  /// Begins this rank's part. Law: it allocates nothing and looks nothing up.
  virtual void start() = 0;

  /// Returns when this rank's part of all that was started is complete, its buffers readable.
  virtual void wait() = 0;
};

/// Time that passes on the device, between two points of what is enqueued there.
class DeviceTimer {
 public:
  virtual ~DeviceTimer() = default;
  virtual void begin() = 0;
  virtual void end() = 0;
  /// Seconds from `begin` to `end`, once the work between them is complete.
  virtual double elapsed_s() = 0;
};

/// Whether other communication goes on at the same time.
enum class Company { alone, beside_others };

/// A way to communicate: a library and the kind of memory it works on. One folder under
/// backends/ each.
class Backend {
 public:
  virtual ~Backend() = default;

  /// As in records and on the command line: "mpi-host", "xccl", "mpi-device", "mpi-staged",
  /// "ipc-put", "ipc-get".
  virtual std::string_view name() const = 0;

  virtual Memory& memory() = 0;

  /// Whether work is enqueued on the device: a second `start` may follow before the first `wait`,
  /// and actions of the same backend are done in the order in which they were started.
  virtual bool enqueues() const { return false; }

  /// Whether what is enqueued can be recorded.
  virtual bool can_record() const { return false; }

  /// Whether its library has an allocator of its own (Allocator::library).
  virtual bool can_allocate() const { return false; }

  /// What `start_all` starts, without doing it: to `start` the action does all of that, by one
  /// call. All ranks make it, and start it as often; null where `can_record` says no.
  virtual std::unique_ptr<Action> record(const std::function<void()>& /*start_all*/) {
    return nullptr;
  }

  /// Seconds that it took to set the library up, beside MPI's own start (ncclCommInitRank, say).
  virtual double init_s() const { return 0.0; }

  /// The library's name and version where it is not MPI ("NCCL 2.28.9"); else empty.
  virtual std::string_view library() const { return {}; }

  /// Messages between ranks. A rank alone with a single message may use blocking calls.
  /// All ranks call it, in the same order and with messages of the same exchange. UsageError, on
  /// all ranks, where the backend doesn't reach one of them: either every rank is given it, or
  /// every rank has one that isn't reached.
  virtual std::unique_ptr<Action> exchange(const Exchange& messages, const Buffers& buffers,
                                           DataType type, Company company) = 0;

  /// An operation that the library has a call of its own for; null where it has none: it is made
  /// of messages then.
  virtual std::unique_ptr<Action> collective(const Layout& layout, const Buffers& buffers,
                                             Reduction reduction) = 0;

  /// Null where the backend has no clock on a device.
  virtual DeviceTimer* device_timer() { return nullptr; }
};

/// The one that uses no GPU.
constexpr std::string_view kHostBackend = "mpi-host";

/// The backends of this executable, those of the host first.
std::vector<std::string_view> backend_names();

/// Sets a backend up, on all ranks. UsageError lists the names where there is none of this name.
std::unique_ptr<Backend> make_backend(std::string_view name, const World& world,
                                      BackendOptions backend_options = {});

}  // namespace commtune
