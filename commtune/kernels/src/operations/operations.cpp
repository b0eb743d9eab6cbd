#include "operations/operations.h"

#include <algorithm>
#include <utility>

#include "cli/words.h"
#include "error.h"
#include "operations/steps.h"

namespace commtune {

namespace {

constexpr Words<Operation, 19> kOperations{{{
    {Operation::ping_pong, "ping-pong"},
    {Operation::bidirectional, "bidirectional"},
    {Operation::stream, "stream"},
    {Operation::allreduce, "allreduce"},
    {Operation::reduce, "reduce"},
    {Operation::broadcast, "broadcast"},
    {Operation::allgather, "allgather"},
    {Operation::reduce_scatter, "reduce-scatter"},
    {Operation::alltoall, "alltoall"},
    {Operation::ring, "ring"},
    {Operation::incast, "incast"},
    {Operation::one_to_many, "one-to-many"},
    {Operation::self, "self"},
    {Operation::rail, "rail"},
    {Operation::asymmetric, "asymmetric"},
    {Operation::symmetric, "symmetric"},
    {Operation::pairs, "pairs"},
    {Operation::matrix, "matrix"},
    {Operation::striping, "striping"},
}}};

constexpr Words<DataType, 4> kDataTypes{{{
    {DataType::float32, "float32"},
    {DataType::float64, "float64"},
    {DataType::int32, "int32"},
    {DataType::uint8, "uint8"},
}}};

constexpr Words<Reduction, 2> kReductions{{{
    {Reduction::sum, "sum"},
    {Reduction::max, "max"},
}}};

template <class Enum, std::size_t N>
Enum value_in(const Words<Enum, N>& words, std::string_view text, const char* what) {
  std::string legal;
  for (const auto& [value, name] : words.all) {
    if (name == text) return value;
    legal.append(legal.empty() ? "" : ", ").append(name);
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

/// How many others each sender of a pattern shares its bytes among.
std::size_t receivers_of_one(Operation operation, int ranks, const Shape& shape) {
  const auto others = static_cast<std::size_t>(ranks / shape.group_size - 1);
  if (operation == Operation::rail) return others;
  if (operation == Operation::asymmetric) {
    return others * static_cast<std::size_t>(shape.group_size);
  }
  return operation == Operation::symmetric ? others * static_cast<std::size_t>(shape.active) : 1;
}

/// What bandwidths are computed from; see docs/benchmark.md.
std::size_t counted_bytes(const Layout& layout, const Shape& shape, std::size_t element,
                          const std::vector<Exchange>& steps) {
  const auto ranks = static_cast<std::size_t>(layout.ranks);
  switch (layout.operation) {
    case Operation::stream:
      return static_cast<std::size_t>(shape.window) * layout.bytes_per_peer;
    case Operation::incast:
    case Operation::one_to_many:
      return (ranks - 1) * layout.bytes_per_peer;
    case Operation::rail:
    case Operation::asymmetric:
    case Operation::symmetric:
      return boundary_count(steps, shape) * element;
    case Operation::matrix:
      return whole_count(steps) * element;
    default:
      return layout.bytes_per_rank;
  }
}

Plan pattern_plan(Layout layout, std::size_t element, const Shape& shape) {
  const std::size_t whole = layout.bytes / element;
  const std::size_t receivers = receivers_of_one(layout.operation, layout.ranks, shape);
  layout.count = std::max<std::size_t>(1, whole / receivers);
  layout.bytes_per_peer = layout.count * element;
  layout.bytes_per_rank = layout.bytes_per_peer * receivers;
  layout.meaning = "per-rank";
  auto steps = steps_of(layout, shape);
  const Extent extent = extent_of(steps);
  layout.send_count = extent.send;
  layout.receive_count = extent.receive;
  layout.bytes_total = counted_bytes(layout, shape, element, steps);
  return {layout, std::move(steps)};
}

}  // namespace

std::string_view word(Operation operation) { return kOperations.word(operation); }
std::string_view word(DataType type) { return kDataTypes.word(type); }
std::string_view word(Reduction reduction) { return kReductions.word(reduction); }

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
  return operation == Operation::allreduce || operation == Operation::reduce ||
         operation == Operation::reduce_scatter;
}

bool is_collective(Operation operation) {
  return counts_total(operation) || reduces(operation) || operation == Operation::broadcast;
}

Plan plan_of(Operation operation, DataType type, std::size_t bytes, int ranks, const Shape& shape) {
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
  if (counts_total(operation)) return {total_layout(layout, element), {}};
  if (is_collective(operation)) return {per_rank_layout(layout, element), {}};
  check_ranks(operation, ranks, shape);
  return pattern_plan(layout, element, shape);
}

Layout lay_out(Operation operation, DataType type, std::size_t bytes, int ranks,
               const Shape& shape) {
  return plan_of(operation, type, bytes, ranks, shape).layout;
}

void check_ranks(Operation operation, int ranks, const Shape& shape) {
  if (is_collective(operation) || operation == Operation::ring || operation == Operation::self) {
    return;
  }
  const std::string name(word(operation));
  if (ranks < 2) throw UsageError(name + " needs at least 2 ranks");
  if (operation == Operation::matrix) check_flows(shape, ranks);
  if (!is_grouped(operation)) return;
  const int groups = ranks / shape.group_size;
  if (ranks % shape.group_size != 0 || groups < 2) {
    throw UsageError(name + " needs 2 or more groups of --group-size " +
                     std::to_string(shape.group_size) + ": " + std::to_string(ranks) +
                     " ranks don't make them");
  }
  if (operation == Operation::striping && groups != 2) {
    throw UsageError("striping is between 2 groups: --group-size has to be half of the ranks");
  }
  if (shape.active > shape.group_size) {
    throw UsageError("--active is more than --group-size");
  }
}

double bus_factor(Operation operation, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  if (operation == Operation::allreduce) return 2 * others;
  return counts_total(operation) ? others : 1.0;
}

double time_share(Operation operation) { return operation == Operation::ping_pong ? 0.5 : 1.0; }

}  // namespace commtune
