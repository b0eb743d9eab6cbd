#include <cmath>
#include <cstring>
#include <set>
#include <vector>

#include "error.h"
#include "harness.h"
#include "timing/fingerprint.h"

using namespace commtune;

namespace {

constexpr std::size_t kElements = 4096;

template <class T>
std::vector<T> filled(DataType type, int rank, std::uint64_t round = 0) {
  std::vector<T> data(kElements);
  fill_wide(type, data.data(), kElements, rank, round);
  return data;
}

/// Elements whose sum over three ranks comes out otherwise in another order.
template <class T>
std::size_t differing(DataType type) {
  const auto a = filled<T>(type, 0);
  const auto b = filled<T>(type, 1);
  const auto c = filled<T>(type, 2);
  std::size_t count = 0;
  for (std::size_t i = 0; i < kElements; ++i) {
    // Volatile, so that no compiler adds in wider registers.
    const volatile T left = a[i] + b[i];
    const volatile T right = b[i] + c[i];
    count += left + c[i] != a[i] + right ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST(another_order_of_summation_shows_in_about_every_fourth_element) {
  EXPECT(differing<float>(DataType::float32) > kElements / 5);
  EXPECT(differing<double>(DataType::float64) > kElements / 5);
}

TEST(values_are_finite_and_depend_on_rank_round_and_index) {
  const auto data = filled<float>(DataType::float32, 0);
  const std::set<float> distinct(data.begin(), data.end());
  EXPECT(distinct.size() > kElements - 10);
  for (const float value : data) EXPECT(std::isfinite(value) && value != 0.0F);
  EXPECT((data == filled<float>(DataType::float32, 0)));
  EXPECT((data != filled<float>(DataType::float32, 1)));
  EXPECT((data != filled<float>(DataType::float32, 0, 1)));
}

TEST(a_prefix_is_the_same_whatever_the_count) {
  std::vector<double> few(7);
  fill_wide(DataType::float64, few.data(), few.size(), 3, 2);
  const auto many = filled<double>(DataType::float64, 3, 2);
  EXPECT(std::memcmp(few.data(), many.data(), few.size() * sizeof(double)) == 0);
}

TEST(whole_numbers_have_no_order_to_show) {
  std::vector<std::int32_t> data(kElements);
  EXPECT(harness::contains(
      harness::message_of<Error>([&] { fill_wide(DataType::int32, data.data(), kElements, 0, 0); }),
      "floating-point"));
}

TEST(only_floating_sums_over_three_ranks_show_an_order) {
  const auto shows = [](Operation operation, DataType type, Reduction reduction, int ranks) {
    return shows_order(operation, type, reduction, ranks);
  };
  EXPECT(shows(Operation::allreduce, DataType::float32, Reduction::sum, 3));
  EXPECT(shows(Operation::reduce_scatter, DataType::float64, Reduction::sum, 4));
  EXPECT(!shows(Operation::allreduce, DataType::float32, Reduction::sum, 2));
  EXPECT(!shows(Operation::allreduce, DataType::float32, Reduction::max, 4));
  EXPECT(!shows(Operation::allreduce, DataType::int32, Reduction::sum, 4));
  EXPECT(!shows(Operation::allgather, DataType::float32, Reduction::sum, 4));
}

TEST(digests_are_fnv_1a) {
  // Test vectors of the algorithm's authors.
  Digest digest;
  EXPECT(hexadecimal(digest.value()) == "cbf29ce484222325");
  digest.add("a", 1);
  EXPECT(hexadecimal(digest.value()) == "af63dc4c8601ec8c");
  Digest longer;
  longer.add("foo", 3);
  longer.add("bar", 3);
  EXPECT(hexadecimal(longer.value()) == "85944171f73967e8");
}
