#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "operations/data_table.h"
#include "operations/operations.h"

namespace commtune {

/// The memory that a backend communicates from and to, and how data gets into and out of it.
///
/// Whoever only fills and compares needs no access to it: what is large stays where it is.
/// Every call returns when it is done. Error if a call of the GPU's runtime fails.
class Memory {
 public:
  virtual ~Memory() = default;

  /// "host" or "device", as in records.
  virtual std::string_view name() const = 0;

  /// Zeroed and aligned to a page, each page touched by this rank; it lives as long as this object.
  virtual std::byte* allocate(std::size_t bytes) = 0;

  virtual void copy_in(void* to, const void* from_host, std::size_t bytes) = 0;
  virtual void copy_out(void* to_host, const void* from, std::size_t bytes) = 0;
  virtual void set(void* to, int byte, std::size_t bytes) = 0;

  /// Element i becomes table[entry_of(first + i)].
  /// @param table kTableSize elements of the type, in host memory
  virtual void fill(DataType type, void* data, std::size_t count, const void* table,
                    std::size_t first) = 0;

  /// How many elements differ from what `fill` with the same arguments would have written.
  virtual std::uint64_t count_different(DataType type, const void* data, std::size_t count,
                                        const void* table, std::size_t first) = 0;
};

std::unique_ptr<Memory> host_memory();

}  // namespace commtune
