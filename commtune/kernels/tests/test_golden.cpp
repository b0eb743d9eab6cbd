/// The tables in tests/kernels/golden, which the Python benchmark is tested with, too: both sides
/// give the same numbers.

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "harness.h"
#include "operations/operations.h"
#include "timing/statistics.h"
#include "timing/stopping.h"

using namespace commtune;

namespace golden {

struct summaries_row {
  std::vector<double> samples;
  std::array<double, 12> expected;
};

struct median_bounds_row {
  std::size_t count, low, high;
};

struct batches_row {
  double operation_s, resolution_s;
  int batch;
};

struct chunks_row {
  int taken;
  double sample_s;
  int next;
};

struct warmups_row {
  int done;
  double spent_s, slowest_s;
  int next;
};

struct stops_row {
  std::vector<double> samples;
  double spent_s;
  std::string word;  ///< empty: goes on
};

struct layouts_row {
  std::string operation, type;
  std::size_t bytes;
  int ranks;
  std::size_t count, bytes_per_rank, bytes_per_peer, bytes_total, send_count, receive_count;
  std::string meaning;
};

#include "golden_tables.h"  // made by CMake of the files

}  // namespace golden

namespace {

StoppingRule rule() { return StoppingRule({5, 10, 200, 0.01, 0.05}); }

}  // namespace

TEST(samples_are_summed_up_as_in_the_table) {
  for (const auto& row : golden::summaries) {
    const Summary s = summarise(row.samples);
    const std::array<double, 12> found{s.min, s.p5,  s.p25,  s.median, s.p75,        s.p95,
                                       s.p99, s.max, s.mean, s.stdev,  s.median_low, s.median_high};
    // Sums are rounded otherwise than in Python: of samples that are all alike the standard
    // deviation is 0 there, and here nothing beside them.
    const auto is_near = [&s](double a, double b) {
      return harness::near(a, b) || std::fabs(a - b) <= 1e-15 * s.max;
    };
    EXPECT(std::equal(found.begin(), found.end(), row.expected.begin(), is_near));
  }
}

TEST(the_median_lies_between_the_bounds_of_the_table) {
  for (const auto& row : golden::median_bounds) {
    const MedianBounds found = median_bounds(row.count);
    EXPECT(found.low == row.low && found.high == row.high);
  }
}

TEST(a_size_is_measured_for_as_long_as_the_tables_say) {
  for (const auto& row : golden::batches) {
    EXPECT(StoppingRule::batch_for(row.operation_s, row.resolution_s) == row.batch);
  }
  for (const auto& row : golden::chunks) {
    EXPECT(rule().next_chunk(row.taken, row.sample_s) == row.next);
  }
  for (const auto& row : golden::warmups) {
    EXPECT(rule().next_warmup(row.done, row.spent_s, row.slowest_s) == row.next);
  }
  for (const auto& row : golden::stops) {
    const auto found = rule().decide(row.samples, row.spent_s);
    EXPECT((found ? std::string(word(*found)) : "") == row.word);
  }
}

TEST(sizes_are_laid_out_as_in_the_table) {
  for (const auto& row : golden::layouts) {
    const Layout found =
        lay_out(parse_operation(row.operation), parse_data_type(row.type), row.bytes, row.ranks);
    EXPECT(found.count == row.count);
    EXPECT(found.bytes_per_rank == row.bytes_per_rank);
    EXPECT(found.bytes_per_peer == row.bytes_per_peer);
    EXPECT(found.bytes_total == row.bytes_total);
    EXPECT(found.send_count == row.send_count);
    EXPECT(found.receive_count == row.receive_count);
    EXPECT(found.meaning == row.meaning);
  }
}
