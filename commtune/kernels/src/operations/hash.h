#pragma once

#include <cstdint>

namespace commtune {

/// A hash of a number, all of whose bits depend on all of the number's (MurmurHash3's finalizer).
inline std::uint64_t mix_bits(std::uint64_t value) {
  value = (value ^ (value >> 33)) * 0xFF51AFD7ED558CCDULL;
  value = (value ^ (value >> 33)) * 0xC4CEB9FE1A85EC53ULL;
  return value ^ (value >> 33);
}

}  // namespace commtune
