#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "cli/options.h"
#include "operations/operations.h"

namespace commtune {

class World;

/// The backends of a run. Most operations use the first one for everything.
struct Backends {
  std::unique_ptr<Backend> main;
  std::unique_ptr<Backend> inside;    ///< matrix, striping: inside a node; null: main
  std::unique_ptr<Backend> between;   ///< matrix, striping: between nodes; null: main
  std::unique_ptr<Backend> assemble;  ///< striping: its last step; null: as inside a node

  Backend& for_inside() const { return inside ? *inside : *main; }
  Backend& for_between() const { return between ? *between : *main; }
  Backend& for_assembling() const { return assemble ? *assemble : for_inside(); }

  /// Whether all of an operation goes by the first one.
  bool is_single() const { return !inside && !between && !assemble; }
};

/// Which part of an operation is measured.
enum class Part {
  whole,
  inside,     ///< matrix: messages inside nodes, by themselves
  between,    ///< matrix: messages between nodes, by themselves
  split,      ///< striping: its first step by itself
  translate,  ///< its second
  assemble,   ///< its third
  kept_apart  ///< all three, but no rank begins one before all have ended the one before
};

/// Whether all of an operation's messages are sent.
inline bool is_all(Part part) { return part == Part::whole || part == Part::kept_apart; }

/// The word in the records.
std::string_view word(Part part);

/// The parts that an operation is measured in, the whole last.
std::vector<Part> parts_of(const Options& options, const Backends& backends);

/// The bytes that all ranks send in a part of an operation; 0 where it has nothing to do.
/// @param node_of the node of each rank
std::size_t bytes_of_part(const Plan& plan, Part part, const std::vector<int>& node_of);

/// Stages that follow each other; the actions of one are under way together.
using Stages = std::vector<std::vector<std::unique_ptr<Action>>>;

/// An operation at one size, ready to be done.
class Work {
 public:
  /// All ranks make it, with the same arguments. Needs the plan only meanwhile. UsageError where a
  /// backend can't do it.
  /// @param node_of the node of each rank
  /// @param places where in the buffers it is done, in turn; at least one
  Work(const Backends& backends, const World& world, const std::vector<int>& node_of,
       const Plan& plan, Reduction reduction, const Shape& shape, Part part,
       const std::vector<Buffers>& places);

  /// Does it so often; returns each time when this rank's part is complete.
  /// @param timer of the device, which has begun: ends as soon as all is enqueued, so that the time
  ///   until the host learns of the end is no part of it. Null: none
  void one_by_one(int times, DeviceTimer* timer = nullptr);

  /// Where work is enqueued: all of it first, then one wait. Elsewhere as one by one.
  void together(int times, DeviceTimer* timer = nullptr);

  /// From now on each time is a launch of so many operations as they are now, from the first place
  /// on. All ranks call it; the backend records.
  void record(int operations);

  /// Operations that are done each time: those recorded, else one.
  int operations_at_once() const { return operations_at_once_; }

  /// Goes back to the first place.
  void rewind() { next_ = 0; }

  /// Whether the library has a call for it, or it is made of messages.
  bool is_call() const { return is_call_; }

  /// Whether this rank sends or receives anything.
  bool takes_part() const { return takes_part_; }

  DeviceTimer* device_timer() const { return timer_; }

 private:
  Stages& next_place();
  Action* start(int times);

  Backend& main_;
  const World& world_;
  bool keeps_apart_;
  std::vector<Stages> places_;
  std::size_t next_ = 0;
  bool is_call_ = false;
  bool enqueues_ = false;
  bool takes_part_ = true;
  DeviceTimer* timer_ = nullptr;
  std::unique_ptr<Action> recorded_;
  int operations_at_once_ = 1;
};

}  // namespace commtune
