#include <algorithm>
#include <cstdint>
#include <cstring>

#include "backends/memories.h"
#include "error.h"
#include "harness.h"
#include "operations/check.h"
#include "operations/steps.h"

using namespace commtune;

namespace {

constexpr int kLayoutRanks = 4;

Shape grouped(int size, int active, Direction direction = Direction::outbound) {
  Shape shape;
  shape.group_size = size;
  shape.active = active;
  shape.direction = direction;
  return shape;
}

std::uint64_t bytes_of(Operation operation, const Shape& shape, std::size_t bytes) {
  return lay_out(operation, DataType::float32, bytes, kLayoutRanks, shape).bytes_total;
}

/// Of an alltoall: what each rank sends.
std::vector<Exchange> all_steps_of(const Plan& plan) {
  const Layout& layout = plan.layout;
  if (layout.operation != Operation::alltoall) return plan.steps;
  Exchange all;
  for (int rank = 0; rank < kLayoutRanks; ++rank) {
    for (const Message& message : own_part_of_alltoall(kLayoutRanks, layout.count, rank)) {
      if (message.from == rank) all.push_back(message);
    }
  }
  return {all};
}

/// Does all messages by copying, on buffers of all ranks; then each rank checks its own.
CheckResult done_by_copying(Operation operation, const Shape& shape, bool loses_one = false) {
  const Plan plan = plan_of(operation, DataType::float32, 4000, kLayoutRanks, shape);
  const Layout& layout = plan.layout;
  const auto memory = host_memory();
  std::vector<std::vector<float>> sent(kLayoutRanks, std::vector<float>(layout.send_count));
  std::vector<std::vector<float>> received(kLayoutRanks,
                                           std::vector<float>(layout.receive_count, -1));
  const auto pattern = [](int rank) {
    return make_pattern(DataType::float32, Reduction::sum, 1, rank, kLayoutRanks);
  };
  for (int rank = 0; rank < kLayoutRanks; ++rank) {
    pattern(rank)->fill(*memory, sent[static_cast<std::size_t>(rank)].data(), layout.send_count);
  }
  int number = 0;
  for (const Exchange& step : all_steps_of(plan)) {
    for (const Message& message : step) {
      if (loses_one && ++number == 1) continue;
      // In striping all but the first rank of the first group pass on what they received.
      const bool passes = operation == Operation::striping && message.from != 0;
      const auto from = static_cast<std::size_t>(message.from);
      const float* source = (passes ? received : sent)[from].data() + message.from_offset;
      std::copy_n(source, message.count,
                  received[static_cast<std::size_t>(message.to)].data() + message.to_offset);
    }
  }
  CheckResult sum;
  for (int rank = 0; rank < kLayoutRanks; ++rank) {
    sum += pattern(rank)->check(*memory, received[static_cast<std::size_t>(rank)].data(), layout,
                                received_in(plan, shape, rank));
  }
  return sum;
}

}  // namespace

TEST(what_messages_bring_is_what_the_check_expects) {
  Shape matrix;
  matrix.flows = {{0, 1, 8}, {2, 3, 4}, {3, 3, 1}};
  for (const auto operation : {Operation::ping_pong, Operation::bidirectional, Operation::stream,
                               Operation::alltoall, Operation::ring, Operation::incast,
                               Operation::one_to_many, Operation::self, Operation::pairs}) {
    EXPECT(done_by_copying(operation, {}).wrong == 0);
    EXPECT(done_by_copying(operation, {}).checked > 0);
  }
  for (const auto direction :
       {Direction::outbound, Direction::bidirectional, Direction::omnidirectional}) {
    for (const auto operation : {Operation::rail, Operation::asymmetric, Operation::symmetric}) {
      for (const int active : {1, 2}) {
        EXPECT(done_by_copying(operation, grouped(2, active, direction)).wrong == 0);
        EXPECT(done_by_copying(operation, grouped(2, active, direction), true).wrong > 0);
      }
    }
  }
  EXPECT(done_by_copying(Operation::striping, grouped(2, 1)).wrong == 0);
  EXPECT(done_by_copying(Operation::striping, grouped(2, 1)).checked == 1000);
  EXPECT(done_by_copying(Operation::striping, grouped(2, 1), true).wrong == 500);
  EXPECT(done_by_copying(Operation::matrix, matrix).wrong == 0);
  EXPECT(done_by_copying(Operation::matrix, matrix).checked == 1000 + 500 + 125);
}

TEST(both_ends_of_a_message_of_alltoall_know_the_same) {
  const auto between = [](int rank, int from, int to) {
    Exchange found;
    for (const Message& message : own_part_of_alltoall(kLayoutRanks, 7, rank)) {
      if (message.from == from && message.to == to) found.push_back(message);
    }
    return found;
  };
  for (int from = 0; from < kLayoutRanks; ++from) {
    EXPECT(own_part_of_alltoall(kLayoutRanks, 7, from).size() == 2 * kLayoutRanks - 1);
    for (int to = 0; to < kLayoutRanks; ++to) {
      const Exchange sent = between(from, from, to);
      const Exchange received = between(to, from, to);
      EXPECT(sent.size() == 1 && received.size() == 1);
      EXPECT(sent[0].from_offset == received[0].from_offset);
      EXPECT(sent[0].to_offset == received[0].to_offset);
    }
  }
}

TEST(receive_places_of_one_step_do_not_overlap) {
  for (const auto operation : {Operation::rail, Operation::asymmetric, Operation::symmetric}) {
    const Shape shape = grouped(2, 2, Direction::omnidirectional);
    const Plan plan = plan_of(operation, DataType::float32, 4000, kLayoutRanks, shape);
    std::vector<std::vector<int>> used(kLayoutRanks, std::vector<int>(plan.layout.receive_count));
    for (const Message& message : plan.steps.front()) {
      for (std::size_t i = 0; i < message.count; ++i) {
        EXPECT(++used[static_cast<std::size_t>(message.to)][message.to_offset + i] == 1);
      }
    }
  }
}

TEST(patterns_of_groups_count_what_crosses_the_first_group) {
  // 4 ranks in 2 groups: each active rank sends 1,200 bytes in all.
  EXPECT(bytes_of(Operation::rail, grouped(2, 1), 1200) == 1200);
  EXPECT(bytes_of(Operation::rail, grouped(2, 2), 1200) == 2400);
  EXPECT(bytes_of(Operation::rail, grouped(2, 2, Direction::bidirectional), 1200) == 4800);
  EXPECT(bytes_of(Operation::rail, grouped(1, 1), 1200) == 1200);  // shared by 3 receivers
  EXPECT(bytes_of(Operation::rail, grouped(1, 1, Direction::omnidirectional), 1200) == 2400);
  EXPECT(bytes_of(Operation::asymmetric, grouped(2, 1), 1200) == 1200);
  EXPECT(bytes_of(Operation::symmetric, grouped(2, 2), 1200) == 2400);
  EXPECT(bytes_of(Operation::symmetric, grouped(2, 2, Direction::omnidirectional), 1200) == 4800);
}

TEST(messages_of_groups_are_those_of_commbench) {
  const auto count = [](Operation operation, const Shape& shape) {
    return plan_of(operation, DataType::float32, 4000, kLayoutRanks, shape).steps.front().size();
  };
  EXPECT(count(Operation::rail, grouped(2, 2)) == 2);
  EXPECT(count(Operation::asymmetric, grouped(2, 1)) == 2);
  EXPECT(count(Operation::symmetric, grouped(2, 2)) == 4);
  EXPECT(count(Operation::symmetric, grouped(2, 2, Direction::omnidirectional)) == 8);
  EXPECT(count(Operation::rail, grouped(1, 1, Direction::omnidirectional)) == 12);
}

TEST(bandwidths_of_patterns_are_computed_from_all_that_moves) {
  EXPECT(bytes_of(Operation::stream, {}, 1000) == 64'000);
  EXPECT(bytes_of(Operation::incast, {}, 1000) == 3000);
  EXPECT(bytes_of(Operation::one_to_many, {}, 1000) == 3000);
  EXPECT(bytes_of(Operation::ring, {}, 1000) == 1000);
  EXPECT(bytes_of(Operation::self, {}, 1000) == 1000);
  EXPECT(bytes_of(Operation::striping, grouped(2, 1), 1000) == 1000);
}

TEST(the_largest_message_of_a_matrix_has_the_size_and_none_is_lost) {
  Shape shape;
  shape.flows = {{0, 1, 1e9}, {1, 0, 1}};
  const Exchange messages =
      plan_of(Operation::matrix, DataType::float32, 4000, 2, shape).steps.front();
  EXPECT(messages[0].count == 1000);
  EXPECT(messages[1].count == 1);
}

TEST(larger_sizes_need_no_smaller_buffers) {
  Shape matrix;
  matrix.flows = {{0, 1, 8}, {2, 3, 3}, {3, 3, 1}, {0, 3, 0.5}};
  for (const auto operation :
       {Operation::ping_pong, Operation::stream, Operation::alltoall, Operation::allgather,
        Operation::reduce_scatter, Operation::incast, Operation::rail, Operation::asymmetric,
        Operation::symmetric, Operation::matrix, Operation::striping}) {
    const Shape shape = operation == Operation::matrix
                            ? matrix
                            : grouped(2, operation == Operation::striping ? 1 : 2);
    Layout before{};
    for (std::size_t bytes = 4; bytes < 200; ++bytes) {
      const Layout layout = lay_out(operation, DataType::float32, bytes, kLayoutRanks, shape);
      EXPECT(layout.send_count >= before.send_count);
      EXPECT(layout.receive_count >= before.receive_count);
      before = layout;
    }
  }
}

TEST(what_is_received_last_is_received) {
  for (const auto operation :
       {Operation::ping_pong, Operation::stream, Operation::incast, Operation::one_to_many,
        Operation::ring, Operation::symmetric, Operation::striping}) {
    const Shape shape = grouped(2, 2);
    const Plan plan = plan_of(operation, DataType::float32, 4000, kLayoutRanks, shape);
    EXPECT(!received_in(plan, shape, last_receiver(plan, shape)).empty());
  }
}

TEST(groups_that_do_not_fit_are_refused) {
  const auto refused = [](Operation operation, int ranks, const Shape& shape) {
    return harness::message_of<UsageError>([&] { check_ranks(operation, ranks, shape); });
  };
  EXPECT(refused(Operation::rail, 3, grouped(2, 1)) ==
         "rail needs 2 or more groups of --group-size 2: 3 ranks don't make them");
  EXPECT(refused(Operation::symmetric, 4, grouped(4, 1)) ==
         "symmetric needs 2 or more groups of --group-size 4: 4 ranks don't make them");
  EXPECT(refused(Operation::striping, 4, grouped(1, 1)) ==
         "striping is between 2 groups: --group-size has to be half of the ranks");
  EXPECT(refused(Operation::rail, 4, grouped(2, 3)) == "--active is more than --group-size");
  EXPECT(refused(Operation::stream, 1, {}) == "stream needs at least 2 ranks");
  Shape matrix;
  matrix.flows = {{0, 4, 1}};
  EXPECT(refused(Operation::matrix, 4, matrix) == "--matrix: names rank 4, but there are 4 ranks");
}
