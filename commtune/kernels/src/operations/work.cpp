#include "operations/work.h"

#include <algorithm>
#include <utility>

#include "error.h"
#include "operations/steps.h"
#include "ranks/world.h"

namespace commtune {

namespace {

using Actions = std::vector<std::unique_ptr<Action>>;

bool is_inside_node(const Message& message, const std::vector<int>& node_of) {
  return node_of[static_cast<std::size_t>(message.from)] ==
         node_of[static_cast<std::size_t>(message.to)];
}

Exchange messages_inside_nodes(const Exchange& all, const std::vector<int>& node_of, bool inside) {
  Exchange kept;
  for (const Message& message : all) {
    if (is_inside_node(message, node_of) == inside) kept.push_back(message);
  }
  return kept;
}

/// Whether a message of a step belongs to a part.
bool belongs_to(Part part, std::size_t step, const Message& message,
                const std::vector<int>& node_of) {
  switch (part) {
    case Part::whole:
    case Part::kept_apart:
      return true;
    case Part::inside:
      return is_inside_node(message, node_of);
    case Part::between:
      return !is_inside_node(message, node_of);
    case Part::split:
      return step == 0;
    case Part::translate:
      return step == 1;
    case Part::assemble:
      return step == 2;
  }
  throw Error("a part without steps");
}

template <class Act>
void for_each_of_part(const std::vector<Exchange>& steps, Part part,
                      const std::vector<int>& node_of, const Act& act) {
  for (std::size_t step = 0; step < steps.size(); ++step) {
    for (const Message& message : steps[step]) {
      if (belongs_to(part, step, message, node_of)) act(message);
    }
  }
}

/// Makes the stages of one operation.
class StageBuilder {
 public:
  StageBuilder(const Backends& backends, const World& world, const std::vector<int>& node_of,
               const Layout& layout, const Buffers& buffers)
      : backends_(backends), world_(world), node_of_(node_of), layout_(layout), buffers_(buffers) {}

  Stages of(const std::vector<Exchange>& steps, Part part, const Shape& shape) const {
    switch (layout_.operation) {
      case Operation::striping:
        return of_striping(steps, part, shape.group_size);
      case Operation::matrix:
        return of_matrix(steps.front(), part);
      default:
        return of_messages(steps);
    }
  }

 private:
  Stages of_messages(const std::vector<Exchange>& steps) const {
    Stages stages;
    for (const Exchange& step : steps) {
      stages.push_back(single(exchange(*backends_.main, step, buffers_, Company::alone)));
    }
    return stages;
  }

  /// Messages inside nodes and between them, each on a backend of its own.
  Stages of_matrix(const Exchange& all, Part part) const {
    const Exchange inside = messages_inside_nodes(all, node_of_, true);
    const Exchange between = messages_inside_nodes(all, node_of_, false);
    const Company company = part == Part::whole ? Company::beside_others : Company::alone;
    Stages stages(1);
    if (part != Part::between) add(stages[0], backends_.for_inside(), inside, company);
    if (part != Part::inside) add(stages[0], backends_.for_between(), between, company);
    return stages;
  }

  Stages of_striping(const std::vector<Exchange>& steps, Part part, int group_size) const {
    const bool is_second_group = world_.rank() >= group_size;
    const bool is_head = world_.rank() % group_size == 0;
    // Ranks in between pass on what they received.
    const Buffers passing{buffers_.received, buffers_.received};
    Stages stages;
    if (part == Part::split || is_all(part)) {
      add_stage(stages, backends_.for_inside(), steps[0], buffers_);
    }
    if (part == Part::translate || is_all(part)) {
      const bool passes = !is_second_group && !is_head;
      add_stage(stages, backends_.for_between(), steps[1], passes ? passing : buffers_);
    }
    if (part == Part::assemble || is_all(part)) {
      const bool passes = is_second_group && !is_head;
      add_stage(stages, backends_.for_assembling(), steps[2], passes ? passing : buffers_);
    }
    return stages;
  }

  std::unique_ptr<Action> exchange(Backend& backend, const Exchange& messages,
                                   const Buffers& buffers, Company company) const {
    return backend.exchange(messages, buffers, layout_.type, company);
  }

  static Actions single(std::unique_ptr<Action> action) {
    Actions actions;
    actions.push_back(std::move(action));
    return actions;
  }

  void add(Actions& actions, Backend& backend, const Exchange& messages, Company company) const {
    if (!messages.empty()) actions.push_back(exchange(backend, messages, buffers_, company));
  }

  void add_stage(Stages& stages, Backend& backend, const Exchange& step,
                 const Buffers& buffers) const {
    stages.push_back(single(exchange(backend, step, buffers, Company::alone)));
  }

  const Backends& backends_;
  const World& world_;
  const std::vector<int>& node_of_;
  const Layout& layout_;
  const Buffers& buffers_;
};

/// The library's own call; null for what is made of messages.
std::unique_ptr<Action> library_call(Backend& backend, const Layout& layout, const Buffers& buffers,
                                     Reduction reduction) {
  if (!is_collective(layout.operation)) return nullptr;
  auto call = backend.collective(layout, buffers, reduction);
  if (!call && layout.operation != Operation::alltoall) {
    throw UsageError(std::string(backend.name()) + " has no " +
                     std::string(word(layout.operation)));
  }
  return call;
}

}  // namespace

std::string_view word(Part part) {
  switch (part) {
    case Part::whole:
      return "whole";
    case Part::inside:
      return "inside";
    case Part::between:
      return "between";
    case Part::split:
      return "split";
    case Part::translate:
      return "translate";
    case Part::assemble:
      return "assemble";
    case Part::kept_apart:
      return "kept-apart";
  }
  throw Error("a part without a word");
}

std::vector<Part> parts_of(const Options& options, const Backends& backends) {
  if (options.operation == Operation::striping) {
    // In a batch on a stream no rank waits for another between steps, and a single step has none.
    const bool waits = options.timing == Timing::blocking && options.timer == Timer::wall;
    if (!waits || options.shape.group_size == 1) {
      return {Part::split, Part::translate, Part::assemble, Part::whole};
    }
    return {Part::split, Part::translate, Part::assemble, Part::kept_apart, Part::whole};
  }
  if (options.operation == Operation::matrix && (backends.inside || backends.between)) {
    return {Part::inside, Part::between, Part::whole};
  }
  return {Part::whole};
}

std::size_t bytes_of_part(const Plan& plan, Part part, const std::vector<int>& node_of) {
  std::size_t count = 0;
  for_each_of_part(plan.steps, part, node_of, [&count](const Message& m) { count += m.count; });
  return count * size_of(plan.layout.type);
}

Work::Work(const Backends& backends, const World& world, const std::vector<int>& node_of,
           const Plan& plan, Reduction reduction, const Shape& shape, Part part,
           const std::vector<Buffers>& places)
    : main_(*backends.main),
      world_(world),
      keeps_apart_(part == Part::kept_apart),
      enqueues_(backends.main->enqueues() && backends.is_single() && !keeps_apart_),
      takes_part_(is_collective(plan.layout.operation)),
      timer_(enqueues_ ? backends.main->device_timer() : nullptr) {
  const Layout& layout = plan.layout;
  for_each_of_part(plan.steps, part, node_of, [&](const Message& message) {
    if (message.from == world.rank() || message.to == world.rank()) takes_part_ = true;
  });
  std::vector<Exchange> of_alltoall;
  if (layout.operation == Operation::alltoall) {
    of_alltoall.push_back(own_part_of_alltoall(layout.ranks, layout.count, world.rank()));
  }
  const auto& steps = of_alltoall.empty() ? plan.steps : of_alltoall;
  for (const Buffers& buffers : places) {
    if (auto call = library_call(*backends.main, layout, buffers, reduction)) {
      is_call_ = true;
      places_.emplace_back(1);
      places_.back()[0].push_back(std::move(call));
    } else {
      const StageBuilder builder(backends, world, node_of, layout, buffers);
      places_.push_back(builder.of(steps, part, shape));
    }
  }
}

Stages& Work::next_place() {
  Stages& place = places_[next_];
  next_ = next_ + 1 == places_.size() ? 0 : next_ + 1;
  return place;
}

void Work::one_by_one(int times, DeviceTimer* timer) {
  for (int i = 0; i < times; ++i) {
    if (enqueues_) {
      together(1, i + 1 == times ? timer : nullptr);
      continue;
    }
    bool is_first = i == 0;
    for (auto& stage : next_place()) {
      if (keeps_apart_ && !is_first) world_.barrier();
      is_first = false;
      for (auto& action : stage) action->start();
      for (auto& action : stage) action->wait();
    }
  }
}

void Work::together(int times, DeviceTimer* timer) {
  if (!enqueues_) return one_by_one(times);
  Action* const last = start(times);
  if (timer != nullptr) timer->end();
  if (last != nullptr) last->wait();
}

void Work::record(int operations) {
  rewind();
  recorded_ = main_.record([this, operations] { start(operations); });
  operations_at_once_ = operations;
}

/// Returns the action to wait for; null where nothing is to be done.
Action* Work::start(int times) {
  if (recorded_) {
    for (int i = 0; i < times; ++i) recorded_->start();
    return recorded_.get();
  }
  Action* last = nullptr;
  for (int i = 0; i < times; ++i) {
    for (auto& stage : next_place()) {
      for (auto& action : stage) {
        action->start();
        last = action.get();
      }
    }
  }
  return last;
}

}  // namespace commtune
