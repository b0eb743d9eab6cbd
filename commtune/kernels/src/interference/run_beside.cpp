#include "interference/run_beside.h"

#include <memory>

#include "cli/exit.h"
#include "error.h"
#include "interference/aggressor.h"
#include "interference/beside.h"
#include "interference/termination.h"
#include "timing/run.h"

namespace commtune {

namespace {

int measure(const Options& options, const std::vector<std::string>& arguments, const Party& party,
            const Clock& clock) {
  const Bench bench =
      made_together(party.all, [&] { return make_bench(options, party.world, party.places); });
  try {
    return run(options, arguments, party, bench, clock);
  } catch (const UsageError& error) {
    party.beside->link.stop(error.status());
    return exit_of_all(error.status(), error.what(), party.world.is_first());
  }
}

/// @param part the aggressors among `all`
int accompany(const Options& options, const std::vector<std::string>& arguments, const World& all,
              const World& part, const Clock& clock) {
  limit_time(options.aggressor.longest_s);
  const Placement placement(part);
  const auto aggressor = made_together(all, [&] {
    const std::string& name = aggressor_backend(options);
    return std::make_unique<Aggressor>(part, clock, options.aggressor, placement,
                                       name == kHostBackend ? nullptr : make_backend(name, part));
  });
  facts_of(options, arguments, all);
  AggressorLink link(all);
  aggressor->run(link);
  unlimit_time();
  if (part.is_first()) link.confirm(aggressor->traffic());
  const int status = part.from_first(link.status());
  const bool is_refused = status == kExitUsage || status == kExitWaived;
  if (is_refused) wait_to_be_heard();
  if (options.end == End::quick && !is_refused) all.end_process(status);
  return status;
}

}  // namespace

int run_beside(Options options, const std::vector<std::string>& arguments, const World& world,
               const Clock& clock) {
  const Roles roles = roles_of(options.aggressor.ranks, world.size());
  const int victims = static_cast<int>(roles.victims.size());
  const bool aggresses = roles.is_aggressor(world.rank());
  const World all(world, 0, aggresses ? world.size() + world.rank() : world.rank());
  if (!options.matrix.empty()) options.shape.flows = read_flows(all, options.matrix);
  check_ranks(options, victims);
  const int window = window_for(options.aggressor, world.size() - victims);
  const World part(all, aggresses ? 1 : 0, all.rank());
  Placement places(all);
  const bool binds_late = settle_on_gpus(options, all, places);
  if (aggresses) return accompany(options, arguments, all, part, clock);
  const Beside beside{roles, VictimLink(all, victims), window};
  return measure(options, arguments, {part, all, places, &beside, binds_late}, clock);
}

}  // namespace commtune
