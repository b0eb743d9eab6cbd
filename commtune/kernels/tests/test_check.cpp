#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>

#include "backends/memories.h"
#include "harness.h"
#include "operations/check.h"
#include "operations/steps.h"

using namespace commtune;

namespace {

constexpr std::size_t kCount = 5000;

Memory& host() {
  static const std::unique_ptr<Memory> memory = host_memory();
  return *memory;
}

/// What every rank sends, by running each rank's own fill.
template <class T>
std::vector<std::vector<T>> sent(DataType type, Reduction reduction, int ranks, std::size_t count) {
  std::vector<std::vector<T>> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.emplace_back(count);
    make_pattern(type, reduction, 1, rank, ranks)->fill(host(), all.back().data(), count);
  }
  return all;
}

/// What rank `rank` receives, computed from the definition of the operation.
template <class T>
std::vector<T> received(const Layout& layout, Reduction reduction, int rank,
                        const std::vector<std::vector<T>>& all) {
  const std::size_t count = layout.count;
  const std::size_t own = static_cast<std::size_t>(rank) * count;
  const auto reduced = [&](std::size_t i) {
    T value = all[0][i];
    for (std::size_t r = 1; r < all.size(); ++r) {
      value = reduction == Reduction::sum ? static_cast<T>(value + all[r][i])
                                          : std::max(value, all[r][i]);
    }
    return value;
  };
  std::vector<T> result(layout.receive_count);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::size_t source = i / count;
    switch (layout.operation) {
      case Operation::allreduce:
      case Operation::reduce:
        result[i] = reduced(i);
        break;
      case Operation::reduce_scatter:
        result[i] = reduced(own + i);
        break;
      case Operation::allgather:
        result[i] = all[source][i % count];
        break;
      case Operation::alltoall:
        result[i] = all[source][own + i % count];
        break;
      case Operation::broadcast:
        result[i] = all[0][i];
        break;
      default:
        result[i] = all[static_cast<std::size_t>(rank == 0 ? layout.ranks - 1 : 0)][i];
    }
  }
  return result;
}

bool receives(Operation operation, int rank, int ranks) {
  if (operation == Operation::broadcast) return rank != 0;
  if (operation == Operation::reduce) return rank == 0;
  return is_collective(operation) || rank == 0 || rank == ranks - 1;
}

template <class T>
void expect_right_results_pass(DataType type, Reduction reduction, int ranks) {
  for (const auto operation : {Operation::ping_pong, Operation::bidirectional, Operation::allreduce,
                               Operation::reduce, Operation::alltoall, Operation::allgather,
                               Operation::reduce_scatter, Operation::broadcast}) {
    if (ranks < 2 && !is_collective(operation)) continue;
    const Plan plan = plan_of(operation, type, kCount * sizeof(T), ranks);
    const Layout& layout = plan.layout;
    const auto all = sent<T>(type, reduction, ranks, kCount);
    for (int rank = 0; rank < ranks; ++rank) {
      const auto data = received<T>(layout, reduction, rank, all);
      const auto result = make_pattern(type, reduction, 1, rank, ranks)
                              ->check(host(), data.data(), layout, received_in(plan, {}, rank));
      EXPECT(result.wrong == 0);
      EXPECT(result.checked == (receives(operation, rank, ranks) ? layout.receive_count : 0));
    }
  }
}

struct Allreduced {
  Layout layout = lay_out(Operation::allreduce, DataType::float32, kCount * 4, 2);
  std::vector<float> data = received<float>(
      layout, Reduction::sum, 0, sent<float>(DataType::float32, Reduction::sum, 2, kCount));
  std::unique_ptr<DataPattern> pattern =
      make_pattern(DataType::float32, Reduction::sum, 1, 0, 2);  // one for all, as in a run

  std::uint64_t wrong() const { return pattern->check(host(), data.data(), layout, {}).wrong; }
};

}  // namespace

TEST(right_results_pass_for_every_operation_type_and_reduction) {
  for (const int ranks : {1, 2, 3, 8}) {
    for (const auto reduction : {Reduction::sum, Reduction::max}) {
      expect_right_results_pass<float>(DataType::float32, reduction, ranks);
      expect_right_results_pass<double>(DataType::float64, reduction, ranks);
      expect_right_results_pass<std::int32_t>(DataType::int32, reduction, ranks);
      expect_right_results_pass<std::uint8_t>(DataType::uint8, reduction, ranks);
    }
  }
}

TEST(one_wrong_element_is_found_at_every_place) {
  Allreduced result;
  for (float& element : result.data) {
    const float right = element;
    element = right + 1;
    EXPECT(result.wrong() == 1);
    element = right;
  }
  EXPECT(result.wrong() == 0);
}

TEST(the_smallest_change_and_no_number_are_found) {
  Allreduced result;
  result.data[7] = std::nextafter(result.data[7], 0.0F);
  result.data[8] = std::numeric_limits<float>::quiet_NaN();
  EXPECT(result.wrong() == 2);
}

TEST(permutations_are_found) {
  for (const std::size_t shift : {1, 2, 64, 1024, 2048, 4096}) {
    Allreduced result;
    std::rotate(result.data.begin(), result.data.begin() + static_cast<long>(shift),
                result.data.end());
    EXPECT(result.wrong() > kCount / 4);
  }
  Allreduced reversed;
  std::reverse(reversed.data.begin(), reversed.data.end());
  EXPECT(reversed.wrong() > kCount / 2);
}

TEST(exchanging_two_neighbours_is_found_nearly_everywhere) {
  Allreduced result;
  std::size_t found = 0;
  for (std::size_t i = 0; i + 1 < kCount; ++i) {
    std::swap(result.data[i], result.data[i + 1]);
    found += result.wrong() == 2 ? 1 : 0;
    std::swap(result.data[i], result.data[i + 1]);
  }
  EXPECT(found >= kCount - 2);  // the two may hold the same value by chance
}

TEST(blocks_in_the_order_of_other_ranks_are_found) {
  const Layout layout = lay_out(Operation::allgather, DataType::uint8, 4096, 2);
  const auto all = sent<std::uint8_t>(DataType::uint8, Reduction::sum, 2, 4096);
  auto data = received<std::uint8_t>(layout, Reduction::sum, 0, all);
  std::rotate(data.begin(), data.begin() + 2048, data.end());
  const auto result = make_pattern(DataType::uint8, Reduction::sum, 1, 0, 2)
                          ->check(host(), data.data(), layout, {});
  EXPECT(result.wrong > 4000);
}

TEST(a_rank_counted_twice_or_not_at_all_is_found) {
  Allreduced result;
  const auto all = sent<float>(DataType::float32, Reduction::sum, 2, kCount);
  for (std::size_t i = 0; i < kCount; ++i) result.data[i] = 2 * all[0][i];
  EXPECT(result.wrong() > kCount - 10);
  for (std::size_t i = 0; i < kCount; ++i) result.data[i] = all[1][i];
  EXPECT(result.wrong() > kCount - 10);
}

TEST(an_untouched_buffer_is_found) {
  Allreduced result;
  DataPattern::poison(host(), result.data.data(), kCount * sizeof(float));
  EXPECT(result.wrong() == kCount);
}

TEST(sums_of_bytes_hold_up_to_many_ranks) {
  for (const int ranks : {255, 256, 300, 1000}) {
    const auto all = sent<std::uint8_t>(DataType::uint8, Reduction::sum, ranks, 600);
    std::vector<int> sums(600, 0);
    for (const auto& data : all) {
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += data[i];
    }
    EXPECT(*std::max_element(sums.begin(), sums.end()) <= 255);
    std::sort(sums.begin(), sums.end());
    const auto distinct = std::unique(sums.begin(), sums.end()) - sums.begin();
    EXPECT(distinct > 50);  // the result still depends on the place
  }
}

TEST(float_sums_are_exact_whatever_the_order) {
  const int ranks = 64;
  const auto all = sent<float>(DataType::float32, Reduction::sum, ranks, 1000);
  for (std::size_t i = 0; i < 1000; ++i) {
    float up = 0;
    float down = 0;
    double exact = 0;
    for (std::size_t r = 0; r < all.size(); ++r) {
      up += all[r][i];
      down += all[all.size() - 1 - r][i];
      exact += static_cast<double>(all[r][i]);
    }
    EXPECT(up == down);
    EXPECT(static_cast<double>(up) == exact);
  }
}

TEST(another_seed_gives_other_data) {
  std::vector<float> one(100);
  std::vector<float> two(100);
  make_pattern(DataType::float32, Reduction::sum, 1, 0, 2)->fill(host(), one.data(), 100);
  make_pattern(DataType::float32, Reduction::sum, 2, 0, 2)->fill(host(), two.data(), 100);
  EXPECT(one != two);
}
