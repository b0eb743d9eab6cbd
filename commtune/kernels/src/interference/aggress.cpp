#include "interference/aggress.h"

#include <cstdio>
#include <functional>
#include <optional>
#include <utility>

#include "error.h"
#include "interference/aggressor.h"
#include "ranks/placement.h"
#include "records/records.h"
#include "timing/run.h"

namespace commtune {

namespace {

constexpr double kTellSeconds = 1.0;

/// An aggressor that nobody but signals, a file and its time ends.
class OwnControl final : public AggressorControl {
 public:
  /// @param tell what to do as soon as messages were moved, and every second after that
  OwnControl(EndWatch watch, std::function<void(const Traffic&)> tell)
      : watch_(std::move(watch)), tell_(std::move(tell)) {}

  void look(const Traffic& so_far) override {
    if (so_far.traffic_s < next_tell_s_) return;
    next_tell_s_ = so_far.traffic_s + kTellSeconds;
    tell_(so_far);
  }

  std::optional<Ending> ending(bool signalled, double now_s) override {
    return watch_.ending(signalled, now_s);
  }

 private:
  EndWatch watch_;
  std::function<void(const Traffic&)> tell_;
  double next_tell_s_ = 0.0;
};

}  // namespace

int aggress(const Options& options, const std::vector<std::string>& arguments, const World& world,
            const Clock& clock) {
  const EndWatch watch(options.aggressor.stop_file, options.aggressor.longest_s);
  if (!world.from_first(watch.has_folder())) {
    throw UsageError("--stop-file: there is no folder for " + options.aggressor.stop_file);
  }
  const Placement placement(world);
  Aggressor aggressor(world, clock, options.aggressor, placement);
  RunFacts facts = facts_of(options, arguments, world);
  facts.backend = kHostBackend;
  std::optional<RecordFile> records;
  if (world.is_first()) {
    records.emplace(options.records);
    records->write_line(aggressor_header_record(facts, options, placement, aggressor.window()));
  }
  bool sends = false;
  OwnControl control(watch, [&records, &sends](const Traffic& traffic) {
    records->write_line(traffic_record(traffic));
    if (!sends) std::fputs("commtune-bench: sending\n", stderr);
    sends = true;
  });
  const Ending ending = aggressor.run(control);
  hurry();
  Totals totals;
  totals.elapsed_s = clock.now();
  totals.init_s = facts.init_s;
  if (records) records->write_line(aggressor_footer_record(totals, aggressor.traffic(), ending));
  return kExitOk;
}

}  // namespace commtune
