#include "work.h"

#include <algorithm>
#include <utility>

#include "error.h"
#include "steps.h"
#include "world.h"

namespace commtune {

namespace {

using Actions = std::vector<std::unique_ptr<Action>>;

bool touches(const std::vector<Exchange>& steps, int rank) {
  for (const Exchange& step : steps) {
    const auto mine = [rank](const Message& m) { return m.from == rank || m.to == rank; };
    if (std::any_of(step.begin(), step.end(), mine)) return true;
  }
  return false;
}

Exchange messages_inside_nodes(const Exchange& all, const std::vector<int>& node_of, bool inside) {
  Exchange kept;
  for (const Message& message : all) {
    const int from = node_of[static_cast<std::size_t>(message.from)];
    const int to = node_of[static_cast<std::size_t>(message.to)];
    if ((from == to) == inside) kept.push_back(message);
  }
  return kept;
}

/// What an operation is made of where the library has no call for it.
std::vector<Exchange> steps_for(const Layout& layout, const Shape& shape, int rank) {
  if (!is_collective(layout.operation)) return steps_of(layout, shape);
  if (layout.operation != Operation::alltoall) return {};
  return {own_part_of_alltoall(layout.ranks, layout.count, rank)};
}

/// The steps that a part by itself takes.
std::vector<Exchange> steps_of_part(const std::vector<Exchange>& steps, Part part,
                                    const std::vector<int>& node_of) {
  switch (part) {
    case Part::whole:
      return steps;
    case Part::inside:
      return {messages_inside_nodes(steps.front(), node_of, true)};
    case Part::between:
      return {messages_inside_nodes(steps.front(), node_of, false)};
    case Part::split:
      return {steps[0]};
    case Part::translate:
      return {steps[1]};
    case Part::assemble:
      return {steps[2]};
  }
  throw Error("a part without steps");
}

/// Makes the stages of one operation.
class Maker {
 public:
  Maker(const Backends& backends, const World& world, const std::vector<int>& node_of,
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
    if (part == Part::split || part == Part::whole) {
      add_stage(stages, backends_.for_inside(), steps[0], buffers_);
    }
    if (part == Part::translate || part == Part::whole) {
      const bool passes = !is_second_group && !is_head;
      add_stage(stages, backends_.for_between(), steps[1], passes ? passing : buffers_);
    }
    if (part == Part::assemble || part == Part::whole) {
      const bool passes = is_second_group && !is_head;
      add_stage(stages, backends_.for_inside(), steps[2], passes ? passing : buffers_);
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
  }
  throw Error("a part without a word");
}

std::vector<Part> parts_of(const Options& options, const Backends& backends) {
  if (options.operation == Operation::striping) {
    return {Part::split, Part::translate, Part::assemble, Part::whole};
  }
  if (options.operation == Operation::matrix && (backends.inside || backends.between)) {
    return {Part::inside, Part::between, Part::whole};
  }
  return {Part::whole};
}

std::size_t bytes_of_part(const Layout& layout, const Shape& shape, Part part,
                          const std::vector<int>& node_of) {
  const auto steps = steps_of_part(steps_of(layout, shape), part, node_of);
  return whole_count(steps) * size_of(layout.type);
}

Work::Work(const Backends& backends, const World& world, const std::vector<int>& node_of,
           const Layout& layout, const Options& options, Part part,
           const std::vector<Buffers>& places)
    : enqueues_(backends.main->enqueues() && !backends.inside && !backends.between),
      timer_(enqueues_ ? backends.main->device_timer() : nullptr) {
  const auto steps = steps_for(layout, options.shape, world.rank());
  takes_part_ =
      is_collective(layout.operation) || touches(steps_of_part(steps, part, node_of), world.rank());
  for (const Buffers& buffers : places) {
    if (auto call = library_call(*backends.main, layout, buffers, options.reduction)) {
      is_call_ = true;
      places_.emplace_back(1);
      places_.back()[0].push_back(std::move(call));
    } else {
      const Maker maker(backends, world, node_of, layout, buffers);
      places_.push_back(maker.of(steps, part, options.shape));
    }
  }
}

Stages& Work::next_place() {
  Stages& place = places_[next_];
  next_ = next_ + 1 == places_.size() ? 0 : next_ + 1;
  return place;
}

void Work::one_by_one(int times) {
  for (int i = 0; i < times; ++i) {
    if (enqueues_) {
      together(1);
      continue;
    }
    for (auto& stage : next_place()) {
      for (auto& action : stage) action->start();
      for (auto& action : stage) action->wait();
    }
  }
}

void Work::together(int times) {
  if (!enqueues_) return one_by_one(times);
  Action* last = nullptr;
  for (int i = 0; i < times; ++i) {
    for (auto& stage : next_place()) {
      for (auto& action : stage) {
        action->start();
        last = action.get();
      }
    }
  }
  if (last != nullptr) last->wait();
}

}  // namespace commtune
