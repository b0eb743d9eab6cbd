#include <algorithm>

#include "harness.h"
#include "operations/buffer_extent.h"
#include "operations/operations.h"
#include "operations/steps.h"

using namespace commtune;

namespace {

constexpr int kRanks = 8;

Options run_of(std::vector<Operation> operations, std::vector<std::size_t> sizes) {
  Options options;
  options.operation = operations.front();
  options.then.assign(operations.begin() + 1, operations.end());
  options.sizes = std::move(sizes);
  options.shape.group_size = 4;
  options.shape.active = 2;
  options.shape.flows = {{0, 1, 8}, {2, 3, 3}, {3, 3, 1}, {0, 3, 0.5}};
  return options;
}

/// Whether a rank's buffers hold whatever it sends and receives, wherever it is done.
bool holds_all(const Options& options, int rank) {
  const BufferExtent extent = extent_of_buffers(options, kRanks, rank);
  for (const Operation operation : operations_of(options)) {
    for (const std::size_t bytes : options.sizes) {
      const Plan plan = plan_of(operation, options.type, bytes, kRanks, options.shape);
      const std::size_t step = std::max(plan.layout.send_count, plan.layout.receive_count);
      const std::size_t places = std::max<std::size_t>(extent.common / step, 1);
      const Extent own = own_extent(plan, rank);
      if ((places - 1) * step + own.send > extent.send) return false;
      if ((places - 1) * step + own.receive > extent.receive) return false;
    }
  }
  return true;
}

}  // namespace

TEST(only_the_one_with_many_others_has_a_buffer_for_them_all) {
  const Options incast = run_of({Operation::incast}, {8, 4000});
  EXPECT(extent_of_buffers(incast, kRanks, 0).receive == 7000);
  EXPECT(extent_of_buffers(incast, kRanks, 0).send == 1000);
  EXPECT(extent_of_buffers(incast, kRanks, 7).receive == 1000);
  EXPECT(extent_of_buffers(incast, kRanks, 7).send == 1000);

  const Options others = run_of({Operation::one_to_many}, {4000});
  EXPECT(extent_of_buffers(others, kRanks, 0).send == 7000);
  EXPECT(extent_of_buffers(others, kRanks, 0).receive == 1000);
  EXPECT(extent_of_buffers(others, kRanks, 7).send == 1000);
  EXPECT(extent_of_buffers(others, kRanks, 7).receive == 1000);
}

TEST(collective_operations_have_the_same_buffers_everywhere) {
  const Options gather = run_of({Operation::allgather}, {32000});
  for (const int rank : {0, 7}) {
    EXPECT(extent_of_buffers(gather, kRanks, rank).send == 1000);
    EXPECT(extent_of_buffers(gather, kRanks, rank).receive == 8000);
    EXPECT(extent_of_buffers(gather, kRanks, rank).common == 1000);
  }
}

TEST(what_is_common_is_the_same_on_every_rank) {
  const Options options = run_of({Operation::incast, Operation::one_to_many}, {4000});
  for (int rank = 1; rank < kRanks; ++rank) {
    EXPECT(extent_of_buffers(options, kRanks, rank).common ==
           extent_of_buffers(options, kRanks, 0).common);
  }
}

TEST(every_size_of_every_operation_finds_its_room) {
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = 4; bytes < 100; bytes += 4) sizes.push_back(bytes);
  sizes.push_back(4096);
  for (const auto operation :
       {Operation::ping_pong, Operation::stream, Operation::alltoall, Operation::reduce_scatter,
        Operation::ring, Operation::incast, Operation::one_to_many, Operation::self,
        Operation::rail, Operation::asymmetric, Operation::symmetric, Operation::pairs,
        Operation::matrix, Operation::striping}) {
    for (std::size_t end = 1; end <= sizes.size(); ++end) {
      const Options alone = run_of({operation}, {sizes.begin(), sizes.begin() + end});
      const Options together = run_of({operation, Operation::incast}, alone.sizes);
      for (int rank = 0; rank < kRanks; ++rank) {
        EXPECT(holds_all(alone, rank));
        EXPECT(holds_all(together, rank));
      }
    }
  }
}
