#include "timing/run.h"

#include <algorithm>
#include <optional>

#include "error.h"
#include "operations/buffer_extent.h"
#include "operations/cases.h"
#include "operations/fault_injection.h"
#include "ranks/devices.h"
#include "ranks/sharing.h"
#include "records/controls.h"
#include "timing/canary.h"
#include "timing/trace.h"

namespace commtune {

namespace {

/// With its library, where it has one.
std::string name_of(const Backend& backend) {
  const std::string library(backend.library());
  return std::string(backend.name()) + (library.empty() ? "" : " of " + library);
}

/// UsageError where the backend can't be timed as is asked for.
void check_timing(const Options& options, Backend& main) {
  if (options.timer == Timer::device && main.device_timer() == nullptr) {
    throw UsageError("--timer device: " + options.backend + " has no clock on a device");
  }
  if (options.graph && !main.can_record()) {
    throw UsageError("--graph yes: " + name_of(main) +
                     " can't be recorded; --backend xccl can, with NCCL or RCCL from 2.9 on, or "
                     "leave --graph out");
  }
  if (options.backend_options.allocator == Allocator::library && !main.can_allocate()) {
    throw UsageError("--allocator library: " + name_of(main) +
                     " allocates nothing; --backend xccl does, with NCCL or RCCL from 2.19 on");
  }
  if (options.timing == Timing::batched && !main.enqueues()) {
    throw UsageError("--timing batched: " + options.backend + " enqueues nothing on a device");
  }
  if (options.backend_options.waiting == Waiting::poll && !main.enqueues()) {
    throw UsageError("--wait poll: " + options.backend + " enqueues nothing on a device");
  }
}

Backends make_backends(const Options& options, const World& world) {
  Backends backends;
  backends.main = make_backend(options.backend, world, options.backend_options);
  if (!options.inside.empty())
    backends.inside = make_backend(options.inside, world, options.backend_options);
  if (!options.between.empty())
    backends.between = make_backend(options.between, world, options.backend_options);
  if (!options.assemble.empty())
    backends.assemble = make_backend(options.assemble, world, options.backend_options);
  for (Backend* other : {backends.inside.get(), backends.between.get(), backends.assemble.get()}) {
    if (other != nullptr && other->memory().name() != backends.main->memory().name()) {
      throw UsageError(std::string(other->name()) + " and " + std::string(backends.main->name()) +
                       " don't work on the same memory: name backends for the host or for GPUs");
    }
  }
  check_timing(options, *backends.main);
  return backends;
}

double longest_over_ranks(const World& world, double seconds) {
  std::vector<double> longest{seconds};
  world.max_to_first(longest);
  return longest[0];
}

void write_babble(RecordFile& records, const Options& options, std::size_t bytes) {
  const std::string piece = babble(options.fault, bytes);
  for (int i = 0; i < kBabblePieces && !piece.empty(); ++i) records.write_raw(piece);
}

/// One operation at all sizes.
/// @param named whether its records say which it is
void measure_sizes(Measurer& measurer, const Options& options, const Bench& bench, bool named,
                   bool oversubscribed, std::optional<RecordFile>& records, Totals& totals) {
  const int ranks = static_cast<int>(bench.node_of.size());
  const auto cases = cases_of(options, bench.backends, ranks);
  for (const std::size_t bytes : options.sizes) {
    if (records) write_babble(*records, options, bytes);
    std::optional<Plan> plan;  // one for all parts of an operation
    for (const Case& one : cases) {
      if (!plan || one.pair) {
        plan = plan_of(options.operation, options.type, bytes, ranks, one.shape);
      }
      if (!has_messages(*plan, one, bench.node_of)) continue;
      SizeResult result = measurer.measure(*plan, one.part, one.shape);
      result.pair = one.pair;
      if (records) records->write_line(measurement_record(result, named, oversubscribed));
      totals.wrong = totals.wrong || result.check.wrong > 0;
      totals.measure_s += result.elapsed_s;
      ++totals.measurements;
      if (result.aggressors && result.aggressors->bytes_moved == 0)
        totals.aggressors_active = false;
    }
  }
}

Totals measure_all(Measurer& measurer, const Options& options, const Bench& bench,
                   bool oversubscribed, std::optional<RecordFile>& records) {
  Totals totals;
  Options one = options;
  for (const Operation operation : operations_of(options)) {
    one.operation = operation;
    const bool named = operation != options.operation;
    measure_sizes(measurer, one, bench, named, oversubscribed, records, totals);
  }
  return totals;
}

Totals trace_all(const Bench& bench, const World& world, const Options& options,
                 std::optional<RecordFile>& records) {
  Tracer tracer(bench, world, options);
  for (const std::size_t bytes : options.sizes) {
    const TraceResult result = tracer.trace(bytes);
    if (records) records->write_line(trace_record(result));
  }
  return {};
}

Totals measure_run(const Bench& bench, const Party& party, const Clock& clock,
                   const Options& options, std::optional<RecordFile>& records) {
  const World& world = party.world;
  // Threads of a library that serves GPUs may disturb it: what a configuration can change must not
  // decide which runs are compared with each other.
  std::optional<Canary> canary;
  if (!uses_gpu(options)) {
    canary.emplace(world, party.places.first(world.size()), clock);
    canary->settle(world);
  }
  Measurer measurer(bench, world, clock, options, canary ? &*canary : nullptr,
                    party.beside != nullptr ? &party.beside->link : nullptr);
  return measure_all(measurer, options, bench, party.places.oversubscribed(), records);
}

/// Adds what only those that measure know.
void add_library(RunFacts& facts, const World& world, const Backend& main) {
  facts.backend = main.name();
  facts.library = main.library();
  facts.library_init_s = longest_over_ranks(world, main.init_s());
}

/// What the driver says of GPUs, and what asking it took: ranks of a node ask at the same time.
void add_gpus(RunFacts& facts, const World& all) {
  const Clock clock;
  const std::string gpu = device_facts_json();
  const std::string nic = device_nic_json();
  const double asked_s = clock.now();
  facts.gpus = all.gather(gpu);
  facts.nics = all.gather(nic);
  facts.gpu_start_s = longest_over_ranks(all, device_start_s());
  facts.gpu_facts_s = longest_over_ranks(all, asked_s);
}

/// Waived on all ranks where some have the same GPU: two that see a single one each take it.
void refuse_shared_gpus(const World& all, const Placement& places) {
  const std::vector<std::string> gpus = all.gather(device_identity());
  const std::string problem = all.from_first(shared_gpu(places.ranks(), gpus));
  if (!problem.empty()) throw Waived(problem);
}

}  // namespace

bool settle_on_gpus(const Options& options, const World& all, Placement& places) {
  if (!uses_gpu(options)) return false;
  const RankPlace& own = places.ranks()[static_cast<std::size_t>(all.rank())];
  const bool is_late =
      made_together(all, [&] { return choose_device(own.machine_rank, options.shares_gpus); });
  if (!options.shares_gpus) refuse_shared_gpus(all, places);
  if (options.bind != Bind::gpu) return false;
  if (is_late) stay_near_device();
  std::vector<std::uint64_t> late{is_late ? 1U : 0U};
  all.sum_to_first(late);
  const bool any_is_late = all.from_first(late[0] > 0);
  if (any_is_late) places = Placement(all);
  return any_is_late;
}

Bench make_bench(const Options& options, const World& world, const Placement& places) {
  const std::size_t element = size_of(options.type);
  const BufferExtent extent = extent_of_buffers(options, world.size(), world.rank());
  Bench bench;
  bench.send_count = extent.send;
  bench.receive_count = extent.receive;
  bench.common_bytes = extent.common * element;
  bench.backends = make_backends(options, world);
  Memory& memory = bench.backends.main->memory();
  bench.buffers = {memory.allocate(bench.send_count * element),
                   memory.allocate(bench.receive_count * element)};
  for (int rank = 0; rank < world.size(); ++rank) {
    bench.node_of.push_back(places.ranks()[static_cast<std::size_t>(rank)].node);
  }
  return bench;
}

RunFacts facts_of(const Options& options, const std::vector<std::string>& arguments,
                  const World& all) {
  RunFacts facts;
  facts.arguments = arguments;
  facts.init_s = longest_over_ranks(all, all.init_s());
  facts.in_shared_launch = all.is_forked();
  facts.environments = all.gather(environment_json(options.env_names));
  if (!options.controls.empty()) facts.controls = all.gather(controls_json(options.controls));
  if (uses_gpu(options)) add_gpus(facts, all);
  return facts;
}

int run(const Options& options, const std::vector<std::string>& arguments, const Party& party,
        const Bench& bench, const Clock& clock) {
  const World& world = party.world;
  RunFacts facts = facts_of(options, arguments, party.all);
  facts.memory = bench.backends.main->memory().name();
  add_library(facts, world, *bench.backends.main);
  if (party.beside != nullptr) {
    facts.roles = &party.beside->roles;
    facts.aggressor_window = party.beside->window;
  }
  facts.binds_late = party.binds_late;
  std::optional<RecordFile> records;
  if (world.is_first()) {
    records.emplace(options.records);
    records->write_line(header_record(facts, options, party.places));
  }
  const bool on_gpus = uses_gpu(options) && options.mode == Mode::measure;
  const std::string before = on_gpus ? device_state_json() : "";
  Totals totals = options.mode == Mode::trace ? trace_all(bench, world, options, records)
                                              : measure_run(bench, party, clock, options, records);
  if (on_gpus) {
    totals.gpus_before = world.gather(before);
    totals.gpus_after = world.gather(device_state_json());
  }
  const ExitStatus status = world.from_first(totals.wrong) ? kExitWrongResult : kExitOk;
  if (party.beside != nullptr) totals.aggressors = party.beside->link.stop(status);
  totals.init_s = facts.init_s;
  totals.elapsed_s = clock.now();
  if (records) records->write_line(footer_record(totals));
  if (options.end == End::quick) {
    records.reset();
    world.end_process(status);
  }
  return status;
}

}  // namespace commtune
