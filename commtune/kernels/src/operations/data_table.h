#pragma once

#include <cstddef>
#include <cstdint>

/// Marks functions that device code calls too. Empty for compilers that know no devices.
#if defined(__CUDACC__) || defined(__HIP__)
#define COMMTUNE_ANYWHERE __host__ __device__
#else
#define COMMTUNE_ANYWHERE
#endif

namespace commtune {

/// Entries of the tables that data is made from; see check.h.
constexpr int kTableBits = 12;
constexpr std::size_t kTableSize = std::size_t{1} << kTableBits;

/// Which table entry element `index` takes: multiplication by 2^64 / golden ratio spreads
/// neighbours and all strides, so that no shift of the data looks like the data.
COMMTUNE_ANYWHERE constexpr std::size_t entry_of(std::size_t index) {
  return (static_cast<std::uint64_t>(index) * 0x9E3779B97F4A7C15ULL) >> (64 - kTableBits);
}

}  // namespace commtune
