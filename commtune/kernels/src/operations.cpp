#include "operations.h"

#include <algorithm>
#include <array>

#include "error.h"

namespace commtune {

namespace {

template <class Value>
struct Word {
  Value value;
  std::string_view text;
};

constexpr std::array<Word<Operation>, 7> kOperations{{
    {Operation::ping_pong, "ping-pong"},
    {Operation::bidirectional, "bidirectional"},
    {Operation::allreduce, "allreduce"},
    {Operation::alltoall, "alltoall"},
    {Operation::allgather, "allgather"},
    {Operation::reduce_scatter, "reduce-scatter"},
    {Operation::broadcast, "broadcast"},
}};

constexpr std::array<Word<DataType>, 4> kDataTypes{{
    {DataType::float32, "float32"},
    {DataType::float64, "float64"},
    {DataType::int32, "int32"},
    {DataType::uint8, "uint8"},
}};

constexpr std::array<Word<Reduction>, 2> kReductions{{
    {Reduction::sum, "sum"},
    {Reduction::max, "max"},
}};

template <class Table, class Value>
std::string_view word_in(const Table& table, Value value) {
  for (const auto& row : table) {
    if (row.value == value) return row.text;
  }
  throw Error("a value without a word");
}

template <class Table>
auto value_in(const Table& table, std::string_view text, const char* what) {
  std::string legal;
  for (const auto& row : table) {
    if (row.text == text) return row.value;
    legal.append(legal.empty() ? "" : ", ").append(row.text);
  }
  throw UsageError("unknown " + std::string(what) + " '" + std::string(text) +
                   "'; one of: " + legal);
}

Layout per_rank_layout(Layout layout, std::size_t element) {
  layout.count = layout.bytes / element;
  layout.bytes_total = layout.count * element;
  layout.bytes_per_rank = layout.bytes_total;
  layout.bytes_per_peer = layout.bytes_total;
  layout.send_count = layout.count;
  layout.receive_count = layout.count;
  layout.meaning = "per-rank";
  return layout;
}

Layout total_layout(Layout layout, std::size_t element) {
  const auto ranks = static_cast<std::size_t>(layout.ranks);
  layout.count = std::max<std::size_t>(1, layout.bytes / (element * ranks));
  const std::size_t whole = layout.count * ranks;
  layout.bytes_per_peer = layout.count * element;
  layout.bytes_total = whole * element;
  layout.send_count = layout.operation == Operation::allgather ? layout.count : whole;
  layout.receive_count = layout.operation == Operation::reduce_scatter ? layout.count : whole;
  layout.bytes_per_rank =
      layout.operation == Operation::alltoall ? layout.bytes_total : layout.bytes_per_peer;
  layout.meaning = "total";
  return layout;
}

bool counts_total(Operation operation) {
  return operation == Operation::alltoall || operation == Operation::allgather ||
         operation == Operation::reduce_scatter;
}

}  // namespace

std::string_view word(Operation operation) { return word_in(kOperations, operation); }
std::string_view word(DataType type) { return word_in(kDataTypes, type); }
std::string_view word(Reduction reduction) { return word_in(kReductions, reduction); }

Operation parse_operation(std::string_view text) {
  return value_in(kOperations, text, "operation");
}
DataType parse_data_type(std::string_view text) { return value_in(kDataTypes, text, "data type"); }
Reduction parse_reduction(std::string_view text) {
  return value_in(kReductions, text, "reduction");
}

std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::float32:
      return sizeof(float);
    case DataType::float64:
      return sizeof(double);
    case DataType::int32:
      return sizeof(std::int32_t);
    case DataType::uint8:
      return sizeof(std::uint8_t);
  }
  throw Error("a data type without a size");
}

bool reduces(Operation operation) {
  return operation == Operation::allreduce || operation == Operation::reduce_scatter;
}

bool between_two_ranks(Operation operation) {
  return operation == Operation::ping_pong || operation == Operation::bidirectional;
}

Layout lay_out(Operation operation, DataType type, std::size_t bytes, int ranks) {
  const std::size_t element = size_of(type);
  if (bytes < element) {
    throw UsageError("size " + std::to_string(bytes) + " is less than one element of " +
                     std::string(word(type)) + " (" + std::to_string(element) + " bytes)");
  }
  Layout layout{};
  layout.operation = operation;
  layout.type = type;
  layout.ranks = ranks;
  layout.bytes = bytes;
  return counts_total(operation) ? total_layout(layout, element) : per_rank_layout(layout, element);
}

double bus_factor(Operation operation, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  if (operation == Operation::allreduce) return 2 * others;
  return counts_total(operation) ? others : 1.0;
}

double time_share(Operation operation) { return operation == Operation::ping_pong ? 0.5 : 1.0; }

}  // namespace commtune
