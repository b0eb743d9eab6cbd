#include "operations/steps.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "error.h"

namespace commtune {

namespace {

/// Puts messages one behind the other in the buffers of their senders and receivers.
class Packing {
 public:
  void add(int from, int to, std::size_t count) {
    std::size_t& sent = sent_[from];
    std::size_t& received = received_[to];
    messages_.push_back({from, to, sent, received, count});
    sent += count;
    received += count;
  }
  Exchange take() { return std::move(messages_); }

 private:
  Exchange messages_;
  std::map<int, std::size_t> sent_;
  std::map<int, std::size_t> received_;
};

Exchange between_first_and_others(int ranks, std::size_t count, bool inwards) {
  Packing packing;
  for (int other = 1; other < ranks; ++other) {
    packing.add(inwards ? other : 0, inwards ? 0 : other, count);
  }
  return packing.take();
}

Exchange around(int ranks, int distance, std::size_t count) {
  Packing packing;
  for (int rank = 0; rank < ranks; ++rank) packing.add(rank, (rank + distance) % ranks, count);
  return packing.take();
}

/// From one group to another, according to the pattern (CommBench: rail, fan, dense).
void add_groups(Packing& packing, const Layout& layout, const Shape& shape, int from, int to) {
  const int g = shape.group_size;
  for (int i = 0; i < shape.active; ++i) {
    if (layout.operation == Operation::rail) {
      packing.add(from * g + i, to * g + i, layout.count);
      continue;
    }
    const int receivers = layout.operation == Operation::asymmetric ? g : shape.active;
    for (int j = 0; j < receivers; ++j) packing.add(from * g + i, to * g + j, layout.count);
  }
}

/// The way back of an asymmetric exchange goes from all of the other groups to the active ones.
void add_back(Packing& packing, const Layout& layout, const Shape& shape, int from, int to) {
  if (layout.operation != Operation::asymmetric) {
    return add_groups(packing, layout, shape, from, to);
  }
  const int g = shape.group_size;
  for (int j = 0; j < g; ++j) {
    for (int i = 0; i < shape.active; ++i) packing.add(from * g + j, to * g + i, layout.count);
  }
}

Exchange of_groups(const Layout& layout, const Shape& shape) {
  Packing packing;
  const int groups = layout.ranks / shape.group_size;
  if (shape.direction == Direction::omnidirectional) {
    for (int from = 0; from < groups; ++from) {
      for (int to = 0; to < groups; ++to) {
        if (from != to) add_groups(packing, layout, shape, from, to);
      }
    }
    return packing.take();
  }
  for (int other = 1; other < groups; ++other) {
    add_groups(packing, layout, shape, 0, other);
    if (shape.direction == Direction::bidirectional) add_back(packing, layout, shape, other, 0);
  }
  return packing.take();
}

Exchange of_flows(const Layout& layout, const Shape& shape) {
  double largest = 0;
  for (const Flow& flow : shape.flows) largest = std::max(largest, flow.bytes);
  Packing packing;
  for (const Flow& flow : shape.flows) {
    const double count = flow.bytes / largest * static_cast<double>(layout.count);
    const auto whole = static_cast<std::size_t>(std::llround(count));
    packing.add(flow.from, flow.to, std::max<std::size_t>(1, whole));
  }
  return packing.take();
}

/// The parts of a message that goes over all ranks of a group: whole elements, none left over.
std::size_t part_begin(std::size_t count, int parts, int part) {
  return count * static_cast<std::size_t>(part) / static_cast<std::size_t>(parts);
}

/// Rank 0 splits its data among its group, all of the group send at once to their opposite
/// numbers, and these assemble it at the first of them. Ranks in between pass on what they
/// received, so their part lies at the beginning of their buffers; nothing is moved within one.
std::vector<Exchange> striped(const Layout& layout, const Shape& shape) {
  const int g = shape.group_size;
  std::vector<Exchange> steps(3);
  for (int i = 0; i < g; ++i) {
    const std::size_t begin = part_begin(layout.count, g, i);
    const std::size_t count = part_begin(layout.count, g, i + 1) - begin;
    if (count == 0) continue;
    if (i > 0) steps[0].push_back({0, i, begin, 0, count});
    steps[1].push_back({i, g + i, i == 0 ? begin : 0, 0, count});
    if (i > 0) steps[2].push_back({g + i, g, 0, begin, count});
  }
  return steps;
}

}  // namespace

bool is_grouped(Operation operation) {
  return operation == Operation::rail || operation == Operation::asymmetric ||
         operation == Operation::symmetric || operation == Operation::striping;
}

std::vector<Exchange> steps_of(const Layout& layout, const Shape& shape) {
  const int last = layout.ranks - 1;
  const std::size_t count = layout.count;
  const Message there{0, last, 0, 0, count};
  const Message back{last, 0, 0, 0, count};
  switch (layout.operation) {
    case Operation::ping_pong:
      return {{there}, {back}};
    case Operation::bidirectional:
      return {{there, back}};
    case Operation::stream:
      return {Exchange(static_cast<std::size_t>(shape.window), there), {{last, 0, 0, 0, 1}}};
    case Operation::ring:
      return {around(layout.ranks, 1, count)};
    case Operation::self:
      return {around(layout.ranks, 0, count)};
    case Operation::incast:
      return {between_first_and_others(layout.ranks, count, true)};
    case Operation::one_to_many:
      return {between_first_and_others(layout.ranks, count, false)};
    case Operation::rail:
    case Operation::asymmetric:
    case Operation::symmetric:
      return {of_groups(layout, shape)};
    case Operation::pairs:
      return {{{shape.first, shape.second, 0, 0, count}}};
    case Operation::matrix:
      return {of_flows(layout, shape)};
    case Operation::striping:
      return striped(layout, shape);
    default:
      throw Error(std::string(word(layout.operation)) + " is not made of messages");
  }
}

Exchange own_part_of_alltoall(int ranks, std::size_t count, int rank) {
  Exchange own;
  own.reserve(2 * static_cast<std::size_t>(ranks));
  const auto add = [&own, count](int from, int to) {
    const std::size_t from_offset = static_cast<std::size_t>(to) * count;
    const std::size_t to_offset = static_cast<std::size_t>(from) * count;
    own.push_back({from, to, from_offset, to_offset, count});
  };
  for (int from = 0; from < ranks; ++from) {
    if (from != rank) {
      add(from, rank);
      continue;
    }
    for (int to = 0; to < ranks; ++to) add(rank, to);
  }
  return own;
}

std::vector<Message> received_in(const Plan& plan, const Shape& shape, int rank) {
  if (plan.layout.operation == Operation::striping) {
    if (rank != shape.group_size) return {};
    return {{0, shape.group_size, 0, 0, plan.layout.count}};
  }
  std::vector<Message> kept;
  std::set<std::size_t> places;
  for (const Exchange& step : plan.steps) {
    for (const Message& message : step) {
      if (message.to == rank && places.insert(message.to_offset).second) kept.push_back(message);
    }
  }
  return kept;
}

int last_receiver(const Plan& plan, const Shape& shape) {
  if (plan.layout.operation == Operation::striping) return shape.group_size;
  return plan.steps.back().back().to;
}

Extent extent_of(const std::vector<Exchange>& steps) {
  Extent extent{1, 1};
  for (const Exchange& step : steps) {
    for (const Message& message : step) {
      extent.send = std::max(extent.send, message.from_offset + message.count);
      extent.receive = std::max(extent.receive, message.to_offset + message.count);
    }
  }
  return extent;
}

Extent own_extent(const Plan& plan, int rank) {
  if (is_collective(plan.layout.operation)) {
    return {plan.layout.send_count, plan.layout.receive_count};
  }
  Extent extent{1, 1};
  for (const Exchange& step : plan.steps) {
    for (const Message& message : step) {
      if (message.from == rank) {
        extent.send = std::max(extent.send, message.from_offset + message.count);
      }
      if (message.to == rank) {
        extent.receive = std::max(extent.receive, message.to_offset + message.count);
      }
    }
  }
  return extent;
}

std::size_t boundary_count(const std::vector<Exchange>& steps, const Shape& shape) {
  std::size_t count = 0;
  for (const Exchange& step : steps) {
    for (const Message& message : step) {
      const bool sends = message.from < shape.group_size;
      const bool receives = message.to < shape.group_size;
      if (sends != receives) count += message.count;
    }
  }
  return count;
}

std::size_t whole_count(const std::vector<Exchange>& steps) {
  std::size_t count = 0;
  for (const Exchange& step : steps) {
    for (const Message& message : step) count += message.count;
  }
  return count;
}

}  // namespace commtune
