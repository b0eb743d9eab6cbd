#include "operations/check.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "error.h"
#include "operations/hash.h"

namespace commtune {

namespace {

constexpr int kPoison = 0xA5;
constexpr std::uint64_t kLeastVariety = 8;

/// Largest value that every kind of arithmetic on the type leaves exact.
template <class T>
constexpr std::uint64_t kLargestExact = 0;
template <>
constexpr std::uint64_t kLargestExact<float> = std::uint64_t{1} << 24;
template <>
constexpr std::uint64_t kLargestExact<double> = std::uint64_t{1} << 52;
template <>
constexpr std::uint64_t kLargestExact<std::int32_t> = 0x7FFFFFFF;
template <>
constexpr std::uint64_t kLargestExact<std::uint8_t> = 0xFF;

template <class T>
class TypedPattern final : public DataPattern {
 public:
  TypedPattern(Reduction reduction, std::uint64_t seed, int rank, int ranks)
      : reduction_(reduction), seed_(seed), rank_(rank), ranks_(ranks) {}

  void fill(Memory& memory, void* send, std::size_t count) const override {
    memory.fill(layout_type(), send, count, own_table().data(), 0);
  }

  CheckResult check(Memory& memory, const void* received, const Layout& layout,
                    const std::vector<Message>& messages) const override {
    const T* data = static_cast<const T*>(received);
    const std::size_t own = static_cast<std::size_t>(rank_) * layout.count;
    switch (layout.operation) {
      case Operation::broadcast:
        if (rank_ == 0) return {};
        return compare(memory, data, layout.count, table_of(0, layout.count, 0), 0);
      case Operation::reduce:
        return rank_ == 0 ? compare(memory, data, layout.count, reduced_table(), 0) : CheckResult{};
      case Operation::allreduce:
        return compare(memory, data, layout.count, reduced_table(), 0);
      case Operation::reduce_scatter:
        return compare(memory, data, layout.count, reduced_table(), own);
      case Operation::allgather:
        return check_blocks(memory, data, layout.count, 0);
      case Operation::alltoall:
        return check_blocks(memory, data, layout.count, own);
      default:
        return check_messages(memory, data, messages);
    }
  }

 private:
  using Table = std::vector<T>;

  static constexpr DataType layout_type() {
    if constexpr (std::is_same_v<T, float>) return DataType::float32;
    if constexpr (std::is_same_v<T, double>) return DataType::float64;
    if constexpr (std::is_same_v<T, std::int32_t>) return DataType::int32;
    return DataType::uint8;
  }

  /// `first` is the place of the block in the sender's buffer.
  static CheckResult compare(Memory& memory, const T* data, std::size_t count, const Table& table,
                             std::size_t first) {
    return {count, memory.count_different(layout_type(), data, count, table.data(), first)};
  }

  CheckResult check_messages(Memory& memory, const T* data,
                             const std::vector<Message>& messages) const {
    CheckResult sum;
    for (const Message& message : messages) {
      if (message.to != rank_) continue;
      sum +=
          compare(memory, data + message.to_offset, message.count,
                  table_of(message.from, message.count, message.from_offset), message.from_offset);
    }
    return sum;
  }

  CheckResult check_blocks(Memory& memory, const T* data, std::size_t count,
                           std::size_t first) const {
    CheckResult sum;
    for (int source = 0; source < ranks_; ++source) {
      sum += compare(memory, data + static_cast<std::size_t>(source) * count, count,
                     table_of(source, count, first), first);
    }
    return sum;
  }

  T value(int rank, std::size_t entry) const {
    const std::uint64_t hash =
        mix_bits(seed_ + mix_bits(static_cast<std::uint64_t>(rank) + 1) + entry);
    const std::uint64_t largest =
        reduction_ == Reduction::max ? kLargestExact<T> : kLargestExact<T> / ranks_;
    if (largest >= kLeastVariety) return static_cast<T>(hash % (largest + 1));
    // Many ranks share a small sum: as many of them as the entry says contribute a one each.
    const std::uint64_t contributors = mix_bits(seed_ + entry) % (kLargestExact<T> + 1);
    const std::uint64_t turn = (static_cast<std::uint64_t>(rank) + mix_bits(entry)) % ranks_;
    return static_cast<T>(turn < contributors ? 1 : 0);
  }

  Table make_table(int rank) const {
    Table table(kTableSize);
    for (std::size_t entry = 0; entry < kTableSize; ++entry) table[entry] = value(rank, entry);
    return table;
  }

  const Table& own_table() const {
    if (own_.empty()) own_ = make_table(rank_);
    return own_;
  }

  /// The table of a rank, at least its `count` elements from `first` on. It holds until the next
  /// call: tables of thousands of ranks would not fit.
  const Table& table_of(int rank, std::size_t count, std::size_t first) const {
    if (rank == rank_) return own_table();
    if (count >= kTableSize) return other_ = make_table(rank);
    other_.resize(kTableSize);
    for (std::size_t i = first; i < first + count; ++i) {
      other_[entry_of(i)] = value(rank, entry_of(i));
    }
    return other_;
  }

  const Table& reduced_table() const {
    if (!reduced_.empty()) return reduced_;
    reduced_ = make_table(0);
    for (int rank = 1; rank < ranks_; ++rank) {
      for (std::size_t entry = 0; entry < kTableSize; ++entry) {
        const T other = value(rank, entry);
        T& sum = reduced_[entry];
        sum = reduction_ == Reduction::sum ? static_cast<T>(sum + other) : std::max(sum, other);
      }
    }
    return reduced_;
  }

  Reduction reduction_;
  std::uint64_t seed_;
  int rank_;
  int ranks_;
  mutable Table own_;  // made when first needed, as the others
  mutable Table other_;
  mutable Table reduced_;
};

}  // namespace

void DataPattern::poison(Memory& memory, void* received, std::size_t bytes) {
  memory.set(received, kPoison, bytes);
}

std::unique_ptr<DataPattern> make_pattern(DataType type, Reduction reduction, std::uint64_t seed,
                                          int rank, int ranks) {
  switch (type) {
    case DataType::float32:
      return std::make_unique<TypedPattern<float>>(reduction, seed, rank, ranks);
    case DataType::float64:
      return std::make_unique<TypedPattern<double>>(reduction, seed, rank, ranks);
    case DataType::int32:
      return std::make_unique<TypedPattern<std::int32_t>>(reduction, seed, rank, ranks);
    case DataType::uint8:
      return std::make_unique<TypedPattern<std::uint8_t>>(reduction, seed, rank, ranks);
  }
  throw Error("a data type without a pattern");
}

}  // namespace commtune
