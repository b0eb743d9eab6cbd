#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "operations.h"

namespace commtune {

class World;

/// A way to communicate: a library and the kind of memory it works on. One folder under
/// backends/ each; CMake puts exactly one into the executable.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;

  /// Send and receive buffers, readable and writable by the host. They are allocated once, for
  /// the largest size, and every page was touched by the rank that owns it.
  virtual std::byte* send() = 0;
  virtual std::byte* received() = 0;

  /// Gets ready for one size: whatever can be decided before the clock runs is decided here.
  virtual void prepare(const Layout& layout) = 0;

  /// Does the prepared operation `times` times. Law: it returns when this rank's part is complete,
  /// its buffers readable; it allocates nothing and looks nothing up.
  virtual void run(int times) = 0;

  /// Lets all ranks go on at nearly the same time.
  virtual void barrier() = 0;
};

/// What a backend has to hold memory for.
struct BackendSpace {
  std::size_t send_bytes;
  std::size_t receive_bytes;
  Reduction reduction;
};

/// The backend that this executable was built with.
std::unique_ptr<Backend> make_backend(const World& world, const BackendSpace& space);

}  // namespace commtune
