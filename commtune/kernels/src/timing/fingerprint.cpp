#include "timing/fingerprint.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "error.h"
#include "operations/hash.h"

namespace commtune {

namespace {

constexpr std::uint64_t kPrime = 0x100000001B3ULL;
/// Powers of two from -8 to 7: partial sums lose bits, but none is lost as a whole.
constexpr std::uint64_t kExponents = 16;
constexpr int kLowestExponent = -8;

/// Between -2^8 and 2^8, all mantissa bits in use, also those that a float drops.
double wide_value(std::uint64_t hash) {
  const double mantissa = 1.0 + static_cast<double>(hash >> 12) * 0x1p-52;
  const int exponent = kLowestExponent + static_cast<int>(hash % kExponents);
  return std::ldexp((hash / kExponents) % 2 == 0 ? mantissa : -mantissa, exponent);
}

template <class T>
void fill_typed(void* data, std::size_t count, std::uint64_t seed) {
  T* values = static_cast<T*>(data);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<T>(wide_value(mix_bits(seed + mix_bits(i))));
  }
}

}  // namespace

bool shows_order(Operation operation, DataType type, Reduction reduction, int ranks) {
  const bool is_float = type == DataType::float32 || type == DataType::float64;
  return reduces(operation) && is_float && reduction == Reduction::sum && ranks >= kFewestForOrder;
}

void fill_wide(DataType type, void* data, std::size_t count, int rank, std::uint64_t round) {
  const std::uint64_t seed =
      mix_bits(round * 0x9E3779B97F4A7C15ULL + static_cast<unsigned>(rank) + 1);
  if (type == DataType::float32) return fill_typed<float>(data, count, seed);
  if (type == DataType::float64) return fill_typed<double>(data, count, seed);
  throw Error("only floating-point sums depend on their order");
}

void Digest::add(const void* data, std::size_t bytes) {
  const auto* first = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i) value_ = (value_ ^ first[i]) * kPrime;
}

std::string hexadecimal(std::uint64_t value) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

}  // namespace commtune
