#include "error.h"
#include "harness.h"
#include "operations/operations.h"

using namespace commtune;

TEST(per_rank_sizes_are_the_buffer_of_each_rank) {
  for (const auto operation : {Operation::allreduce, Operation::broadcast, Operation::ping_pong,
                               Operation::bidirectional}) {
    const Layout layout = lay_out(operation, DataType::float32, 1002, 4);
    EXPECT(layout.bytes == 1002);
    EXPECT(layout.count == 250);
    EXPECT(layout.bytes_total == 1000);
    EXPECT(layout.bytes_per_rank == 1000);
    EXPECT(layout.send_count == 250);
    EXPECT(layout.receive_count == 250);
    EXPECT(layout.meaning == "per-rank");
  }
}

TEST(total_sizes_are_divided_by_the_ranks) {
  const Layout gather = lay_out(Operation::allgather, DataType::float64, 1000, 3);
  EXPECT(gather.count == 41);  // 1000 / (3 * 8)
  EXPECT(gather.bytes_total == 984);
  EXPECT(gather.bytes_per_rank == 328);
  EXPECT(gather.send_count == 41);
  EXPECT(gather.receive_count == 123);
  EXPECT(gather.meaning == "total");

  const Layout scatter = lay_out(Operation::reduce_scatter, DataType::float64, 1000, 3);
  EXPECT(scatter.bytes_per_rank == 328);
  EXPECT(scatter.send_count == 123);
  EXPECT(scatter.receive_count == 41);

  const Layout exchange = lay_out(Operation::alltoall, DataType::float64, 1000, 3);
  EXPECT(exchange.bytes_per_rank == 984);
  EXPECT(exchange.bytes_per_peer == 328);
  EXPECT(exchange.send_count == 123);
  EXPECT(exchange.receive_count == 123);
}

TEST(a_total_is_never_less_than_one_element_a_rank) {
  const Layout layout = lay_out(Operation::allgather, DataType::float32, 4, 8);
  EXPECT(layout.count == 1);
  EXPECT(layout.bytes == 4);
  EXPECT(layout.bytes_total == 32);
}

TEST(less_than_an_element_is_refused) {
  const std::string message = harness::message_of<UsageError>(
      [] { lay_out(Operation::allreduce, DataType::float32, 3, 2); });
  EXPECT(message == "size 3 is less than one element of float32 (4 bytes)");
}

TEST(bus_factors_are_those_of_nccl_tests) {
  EXPECT(harness::near(bus_factor(Operation::allreduce, 4), 1.5));
  EXPECT(harness::near(bus_factor(Operation::allgather, 4), 0.75));
  EXPECT(harness::near(bus_factor(Operation::reduce_scatter, 4), 0.75));
  EXPECT(harness::near(bus_factor(Operation::alltoall, 4), 0.75));
  EXPECT(bus_factor(Operation::broadcast, 4) == 1);
  EXPECT(bus_factor(Operation::ping_pong, 4) == 1);
  EXPECT(bus_factor(Operation::bidirectional, 4) == 1);
  EXPECT(bus_factor(Operation::allreduce, 1) == 0);
}

TEST(a_ping_pong_is_half_a_round_trip) {
  EXPECT(time_share(Operation::ping_pong) == 0.5);
  EXPECT(time_share(Operation::bidirectional) == 1);
}

TEST(words_and_values_match_both_ways) {
  for (const char* text : {"ping-pong", "bidirectional", "allreduce", "alltoall", "allgather",
                           "reduce-scatter", "broadcast"}) {
    EXPECT(word(parse_operation(text)) == text);
  }
  for (const char* text : {"float32", "float64", "int32", "uint8"}) {
    EXPECT(word(parse_data_type(text)) == text);
  }
  for (const char* text : {"sum", "max"}) EXPECT(word(parse_reduction(text)) == text);
}
