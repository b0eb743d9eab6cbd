#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/memories.h"
#include "operations/messages.h"
#include "operations/operations.h"

namespace commtune {

/// Elements compared and found wrong.
struct CheckResult {
  std::uint64_t checked = 0;
  std::uint64_t wrong = 0;

  CheckResult& operator+=(const CheckResult& other) {
    checked += other.checked;
    wrong += other.wrong;
    return *this;
  }
};

/// The data that ranks send, and what they must receive for it.
///
/// The value of element i of rank r depends on both, through a hash: so a wrong, missing, shifted
/// or exchanged element differs from the expected one, and so does a rank counted twice. Values
/// are whole numbers small enough that every order of summation gives exactly the same sum.
class DataPattern {
 public:
  virtual ~DataPattern() = default;

  /// Writes the send data of this rank; a prefix serves every smaller size as well.
  virtual void fill(Memory& memory, void* send, std::size_t count) const = 0;

  /// Compares all that this rank must have received. Ranks that receive nothing check nothing.
  /// @param messages what receive buffers hold; of collective operations nothing need be said
  virtual CheckResult check(Memory& memory, const void* received, const Layout& layout,
                            const std::vector<Message>& messages) const = 0;

  /// Overwrites the receive buffer, so that an operation that does nothing is found out.
  static void poison(Memory& memory, void* received, std::size_t bytes);
};

std::unique_ptr<DataPattern> make_pattern(DataType type, Reduction reduction, std::uint64_t seed,
                                          int rank, int ranks);

}  // namespace commtune
