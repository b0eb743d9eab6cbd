#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "operations.h"

namespace commtune {

/// Elements compared and found wrong.
struct CheckResult {
  std::uint64_t checked = 0;
  std::uint64_t wrong = 0;
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
  virtual void fill(void* send, std::size_t count) const = 0;

  /// Compares all that this rank must have received. Ranks that receive nothing check nothing.
  virtual CheckResult check(const void* received, const Layout& layout) const = 0;

  /// Overwrites the receive buffer, so that an operation that does nothing is found out.
  static void poison(void* received, std::size_t bytes);
};

std::unique_ptr<DataPattern> make_pattern(DataType type, Reduction reduction, std::uint64_t seed,
                                          int rank, int ranks);

}  // namespace commtune
