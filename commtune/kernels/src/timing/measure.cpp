#include "timing/measure.h"

#include <algorithm>
#include <limits>

#include "operations/fault_injection.h"
#include "operations/steps.h"
#include "timing/statistics.h"

namespace commtune {

namespace {

constexpr int kFewestTrials = 3;
constexpr int kMostTrials = 6;
constexpr std::size_t kMostPlaces = 64;
constexpr double kSurelyLongSeconds = 20e-3;  // longer than the kernel stops a process for another

/// What rank 0 decided for all.
struct Decision {
  int next;   ///< samples to take; 0: none
  Stop stop;  ///< why none
};

std::optional<double> skew(const std::vector<double>& longest_s,
                           const std::vector<double>& shortest_s) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < longest_s.size(); ++i) {
    if (shortest_s[i] > 0) ratios.push_back(longest_s[i] / shortest_s[i]);
  }
  if (ratios.empty()) return std::nullopt;
  return summarise(std::move(ratios)).median;
}

}  // namespace

Measurer::Measurer(const Bench& bench, const World& world, const Clock& clock,
                   const Options& options, Canary* canary, const VictimLink* aggressors)
    : bench_(bench),
      world_(world),
      clock_(clock),
      options_(options),
      canary_(canary),
      aggressors_(aggressors),
      rule_(options.limits),
      clock_resolution_s_(world.from_first(Clock::resolution_s())),
      pattern_(
          make_pattern(options.type, options.reduction, options.seed, world.rank(), world.size())) {
  pattern_->fill(bench.backends.main->memory(), bench.buffers.send, bench.send_count);
}

SizeResult Measurer::measure(const Plan& plan, Part part, const Shape& shape) {
  const double began = clock_.now();
  SizeResult result;
  result.layout = plan.layout;
  result.part = part;
  if (!is_all(part)) {
    result.layout.bytes_total = bytes_of_part(plan, part, bench_.node_of);
  }
  work_ = std::make_unique<Work>(bench_.backends, world_, bench_.node_of, plan, options_.reduction,
                                 shape, part, places_for(result.layout));
  result.is_call = work_->is_call();
  time_share_ = time_share(plan.layout.operation);
  // A part by itself passes on whatever lies there.
  const bool checks = options_.check && (part == Part::whole);
  const Expected expected = checks ? expected_of(plan, shape) : Expected{};
  hang_or_crash(options_.fault, plan.layout.bytes, world_.is_last());

  result.canary_before_ns = ask_canary();
  if (checks) poison_received(result.layout);
  result.first_call_s = longest_over_ranks(timed(1));
  if (checks) check_result(result, expected);

  if (options_.graph) work_->record(options_.operations);
  const double warm_began = clock_.now();
  const double operation_s = warm_up(result);
  result.batch = options_.operations > 0 ? options_.operations : choose_batch(operation_s);
  if (checks) poison_received(result.layout);
  const double spent_s = clock_.now() - warm_began;
  const Traffic before = aggressors_ != nullptr ? aggressors_->ask() : Traffic{};
  Samples samples = take_samples(result, spent_s, result.batch * operation_s);
  if (aggressors_ != nullptr) result.aggressors = aggressors_->ask() - before;

  result.canary_after_ns = ask_canary();
  if (checks && options_.rotate) {  // only the first place is compared
    work_->rewind();
    timed(1);
  }
  if (checks) check_result(result, expected);
  result.rank_skew = world_.size() > 1 ? skew(samples.longest_s, samples.shortest_s) : std::nullopt;
  result.samples_s = std::move(samples.longest_s);
  result.elapsed_s = clock_.now() - began;
  return result;
}

Measurer::Expected Measurer::expected_of(const Plan& plan, const Shape& shape) const {
  const Operation operation = plan.layout.operation;
  if (is_collective(operation)) {
    return {{}, operation == Operation::reduce ? 0 : world_.size() - 1};
  }
  return {received_in(plan, shape, world_.rank()), last_receiver(plan, shape)};
}

std::optional<double> Measurer::ask_canary() {
  return canary_ != nullptr ? canary_->measure() : std::nullopt;
}

/// This rank's seconds per operation.
/// @param times operations, or launches of those recorded
double Measurer::timed(int times) {
  world_.barrier();
  const int operations = times * work_->operations_at_once();
  return interval(times) * time_share_ / operations;
}

/// The timed interval, seconds.
double Measurer::interval(int times) {
  const bool batched = options_.timing == Timing::batched;
  DeviceTimer* timer = options_.timer == Timer::device ? work_->device_timer() : nullptr;
  const double begin = clock_.now();
  if (timer != nullptr) timer->begin();
  if (batched) {
    work_->together(times, timer);
  } else {
    work_->one_by_one(times, timer);
  }
  return timer != nullptr ? timer->elapsed_s() : clock_.now() - begin;
}

/// The same number on every rank, so that all decide alike.
double Measurer::longest_over_ranks(double seconds) const {
  std::vector<double> longest{seconds};
  world_.max_to_first(longest);
  return world_.from_first(longest[0]);
}

/// Returns the time of a warm operation, seconds.
double Measurer::warm_up(SizeResult& result) {
  const double began = clock_.now();
  double operation_s = result.first_call_s;
  double slowest_s = result.first_call_s * work_->operations_at_once();
  for (;;) {
    const double spent_s = clock_.now() - began;
    const int next = world_.from_first(rule_.next_warmup(result.warmup, spent_s, slowest_s));
    if (next == 0) return operation_s;
    operation_s = longest_over_ranks(timed(next));
    slowest_s = operation_s * work_->operations_at_once();
    result.warmup += next;
  }
}

/// Warm-up operations of a short kind are few and the first ones slow, and an interruption looks
/// like a long operation: so a choice is tried, and made again from the shortest time seen, until
/// it stands.
int Measurer::choose_batch(double operation_s) {
  int batch = StoppingRule::batch_for(operation_s, clock_resolution_s_);
  for (int trial = 1; trial <= kMostTrials && operation_s < kSurelyLongSeconds; ++trial) {
    const int tried = batch;
    operation_s = std::min(operation_s, longest_over_ranks(timed(tried)));
    batch = StoppingRule::batch_for(operation_s, clock_resolution_s_);
    if (batch == tried && trial >= kFewestTrials) break;
  }
  return batch;
}

Measurer::Samples Measurer::take_samples(SizeResult& result, double spent_s, double sample_s) {
  const double began = clock_.now();
  Samples samples;
  const int times = result.batch / work_->operations_at_once();
  std::vector<double> own;
  own.reserve(static_cast<std::size_t>(options_.limits.max_samples));
  Decision decision = world_.from_first(Decision{rule_.next_chunk(0, sample_s), Stop::max_samples});
  while (decision.next > 0) {
    own.clear();
    for (int i = 0; i < decision.next; ++i) own.push_back(timed(times));
    std::vector<double> longest = own;
    world_.max_to_first(longest);
    if (!work_->takes_part())
      std::fill(own.begin(), own.end(), std::numeric_limits<double>::infinity());
    world_.min_to_first(own);
    samples.longest_s.insert(samples.longest_s.end(), longest.begin(), longest.end());
    samples.shortest_s.insert(samples.shortest_s.end(), own.begin(), own.end());

    const double sampling_s = clock_.now() - began;
    const int taken = static_cast<int>(samples.longest_s.size());
    const auto stop = rule_.decide(samples.longest_s, spent_s + sampling_s);
    decision = {stop ? 0 : rule_.next_chunk(taken, sampling_s / taken),
                stop.value_or(Stop::max_samples)};
    decision = world_.from_first(decision);
  }
  result.stop = decision.stop;
  return samples;
}

void Measurer::poison_received(const Layout& layout) {
  const std::size_t count = std::min(layout.receive_count, bench_.receive_count);
  DataPattern::poison(bench_.backends.main->memory(), bench_.buffers.received,
                      count * size_of(layout.type));
}

/// Where operations are done, in turn: so that what one of them left in a cache is no use to the
/// next, all over the buffers if they are to rotate.
std::vector<Buffers> Measurer::places_for(const Layout& layout) const {
  const std::size_t step = std::max(layout.send_count, layout.receive_count) * size_of(layout.type);
  const std::size_t most = options_.rotate ? std::min(bench_.common_bytes / step, kMostPlaces) : 1;
  std::vector<Buffers> places;
  for (std::size_t i = 0; i < std::max<std::size_t>(most, 1); ++i) {
    places.push_back({bench_.buffers.send + i * step, bench_.buffers.received + i * step});
  }
  return places;
}

/// A fault that was asked for, at one rank that receives something.
void Measurer::spoil(const Layout& layout, const Expected& expected) {
  if (world_.rank() != expected.last_receiver) return;
  Memory& memory = bench_.backends.main->memory();
  const std::size_t element = size_of(layout.type);
  std::size_t offset = 0;
  std::size_t count = layout.receive_count;
  if (!expected.messages.empty()) {
    offset = expected.messages.back().to_offset;
    count = expected.messages.back().count;
  }
  spoil_result(options_.fault, layout.bytes, memory, bench_.buffers.received + offset * element,
               count * element);
}

void Measurer::check_result(SizeResult& result, const Expected& expected) {
  const Layout& layout = result.layout;
  Memory& memory = bench_.backends.main->memory();
  spoil(layout, expected);
  const CheckResult own =
      pattern_->check(memory, bench_.buffers.received, layout, expected.messages);
  std::vector<std::uint64_t> sums{own.checked, own.wrong};
  world_.sum_to_first(sums);
  result.check += {sums[0], sums[1]};
}

}  // namespace commtune
