#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cli/options.h"
#include "interference/aggressor_traffic.h"
#include "interference/beside.h"
#include "operations/check.h"
#include "operations/operations.h"
#include "operations/work.h"
#include "ranks/world.h"
#include "timing/canary.h"
#include "timing/clock.h"
#include "timing/stopping.h"

namespace commtune {

/// What was measured at one size; complete on rank 0 only.
struct SizeResult {
  Layout layout{};
  Part part = Part::whole;
  bool is_call = false;                     ///< done by the library's own call, not by messages
  std::optional<std::pair<int, int>> pair;  ///< of Operation::pairs: sender and receiver
  int warmup = 0;                           ///< times: operations, or launches of those recorded
  int batch = 1;
  std::vector<double> samples_s;  ///< per operation, maximum over ranks, in the order taken
  Stop stop = Stop::max_samples;
  double first_call_s = 0.0;
  std::optional<double> rank_skew;  ///< median of longest / shortest time over ranks
  std::optional<double> canary_before_ns;
  std::optional<double> canary_after_ns;
  CheckResult check;
  std::optional<Traffic> aggressors;  ///< while samples were taken; none where there are none
  double elapsed_s = 0.0;
};

/// What communicates, and where.
struct Bench {
  Backends backends;
  Buffers buffers;
  std::size_t common_bytes = 0;   ///< that both of them have, on every rank
  std::size_t send_count = 0;     ///< elements of this rank's send buffer
  std::size_t receive_count = 0;  ///< elements of this rank's receive buffer
  std::vector<int> node_of;       ///< the node of each rank
};

/// Measures one size after the other.
class Measurer {
 public:
  /// @param canary null: it is not asked
  /// @param aggressors those beside the run; null: there are none
  Measurer(const Bench& bench, const World& world, const Clock& clock, const Options& options,
           Canary* canary, const VictimLink* aggressors);

  /// All ranks call it with the same arguments. Error if a call fails; a wrong result is a result.
  /// @param shape what the plan was made with
  SizeResult measure(const Plan& plan, Part part, const Shape& shape);

 private:
  struct Samples {
    std::vector<double> longest_s;
    std::vector<double> shortest_s;
  };

  std::optional<double> ask_canary();
  double timed(int times);
  double interval(int times);
  double longest_over_ranks(double seconds) const;
  double warm_up(SizeResult& result);
  int choose_batch(double operation_s);
  std::vector<Buffers> places_for(const Layout& layout) const;
  void poison_received(const Layout& layout);
  Samples take_samples(SizeResult& result, double spent_s, double sample_s);

  /// What the check needs to know of the plan.
  struct Expected {
    std::vector<Message> messages;  ///< that this rank receives; none of a collective operation
    int last_receiver;
  };
  Expected expected_of(const Plan& plan, const Shape& shape) const;
  void spoil(const Layout& layout, const Expected& expected);
  void check_result(SizeResult& result, const Expected& expected);

  const Bench& bench_;
  const World& world_;
  const Clock& clock_;
  const Options& options_;
  Canary* canary_;
  const VictimLink* aggressors_;
  StoppingRule rule_;
  double clock_resolution_s_;
  std::unique_ptr<DataPattern> pattern_;
  std::unique_ptr<Work> work_;  ///< of the size that is measured
  double time_share_ = 1.0;     ///< of its operation
};

}  // namespace commtune
