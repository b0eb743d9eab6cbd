#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "operations/operations.h"

namespace commtune {

/// Fewest ranks whose order of summation a sum can show: a + b is b + a.
constexpr int kFewestForOrder = 3;

/// Whether the result of an operation depends on the order in which ranks are added up.
bool shows_order(Operation operation, DataType type, Reduction reduction, int ranks);

/// Writes floating-point values of a wide dynamic range, which depend on rank, round and index
/// only: added up in another order they give another result in about every fourth element.
void fill_wide(DataType type, void* data, std::size_t count, int rank, std::uint64_t round);

/// A running digest (FNV-1a, 64 bits) of bytes.
class Digest {
 public:
  void add(const void* data, std::size_t bytes);
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325ULL;
};

/// Sixteen hexadecimal digits.
std::string hexadecimal(std::uint64_t value);

}  // namespace commtune
