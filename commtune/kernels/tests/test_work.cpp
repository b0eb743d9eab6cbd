/// In what order operations are enqueued, and what of it is recorded: on a backend that writes down
/// what a device would do. A rank alone, with MPI.

#include <mpi.h>

#include <array>
#include <memory>
#include <string>

#include "cli/options.h"
#include "harness.h"
#include "operations/work.h"
#include "ranks/world.h"

using namespace commtune;

namespace {

/// What the device does, a letter each: the places' own, E where the timer ends, and . for a wait;
/// and | where ranks wait for each other, if this is the tape for that.
using Tape = std::string;

Tape*& tape_of_barriers() {
  static Tape* tape = nullptr;
  return tape;
}

class Written final : public Action {
 public:
  Written(Tape& tape, char letter) : tape_(tape), letter_(letter) {}
  void start() override { tape_ += letter_; }
  void wait() override { tape_ += '.'; }

 private:
  Tape& tape_;
  char letter_;
};

/// Writes all of what was recorded whenever it is started.
class Copied final : public Action {
 public:
  Copied(Tape& tape, Tape recorded) : tape_(tape), recorded_(std::move(recorded)) {}
  void start() override { tape_ += "[" + recorded_ + "]"; }
  void wait() override { tape_ += '.'; }

 private:
  Tape& tape_;
  Tape recorded_;
};

class WrittenEnd final : public DeviceTimer {
 public:
  explicit WrittenEnd(Tape& tape) : tape_(tape) {}
  void begin() override { tape_ += 'B'; }
  void end() override { tape_ += 'E'; }
  double elapsed_s() override { return 1.0; }

 private:
  Tape& tape_;
};

class PaperBackend final : public Backend {
 public:
  /// @param letter of its messages
  explicit PaperBackend(Tape& tape, char letter = 'm') : tape_(tape), letter_(letter) {}
  std::string_view name() const override { return "paper"; }
  Memory& memory() override { return *memory_; }
  bool enqueues() const override { return true; }
  bool can_record() const override { return true; }
  DeviceTimer* device_timer() override { return &timer_; }

  std::unique_ptr<Action> record(const std::function<void()>& start_all) override {
    const Tape before = tape_;
    tape_.clear();
    start_all();
    auto copied = std::make_unique<Copied>(tape_, tape_);
    tape_ = before;
    return copied;
  }

  std::unique_ptr<Action> exchange(const Exchange&, const Buffers&, DataType, Company) override {
    return std::make_unique<Written>(tape_, letter_);
  }

  /// The first place is a, the next one b.
  std::unique_ptr<Action> collective(const Layout&, const Buffers&, Reduction) override {
    return std::make_unique<Written>(tape_, static_cast<char>('a' + made_++));
  }

 private:
  Tape& tape_;
  char letter_;
  std::unique_ptr<Memory> memory_ = host_memory();
  WrittenEnd timer_{tape_};
  int made_ = 0;
};

const World& world() {
  static int count = 0;
  static char** none = nullptr;
  static const World all(&count, &none);
  return all;
}

/// An allreduce at three places on paper.
struct ThreePlaces {
  Tape tape;
  Backends backends{std::make_unique<PaperBackend>(tape), nullptr, nullptr, nullptr};
  std::array<std::byte, 24> memory{};
  Work work{
      backends,       world(), {0},         plan_of(Operation::allreduce, DataType::float32, 8, 1),
      Reduction::sum, Shape{}, Part::whole, {place(0), place(8), place(16)}};

  Buffers place(std::size_t offset) { return {memory.data() + offset, memory.data() + offset}; }
};

/// What rank 0 of four does of striping between two groups, on these backends.
Tape striped(Tape& tape, const Backends& backends, Part part = Part::whole, int times = 1) {
  Options options;
  options.operation = Operation::striping;
  options.shape.group_size = 2;
  std::array<std::byte, 64> memory{};
  const Plan plan = plan_of(Operation::striping, DataType::float32, 32, 4, options.shape);
  Work work{backends,          world(),       {0, 0, 1, 1}, plan,
            options.reduction, options.shape, part,         {{memory.data(), memory.data()}}};
  tape_of_barriers() = &tape;
  work.one_by_one(times);
  tape_of_barriers() = nullptr;
  return tape;
}

std::unique_ptr<Backend> paper(Tape& tape, char letter) {
  return std::make_unique<PaperBackend>(tape, letter);
}

}  // namespace

TEST(a_batch_goes_on_at_the_next_place_and_is_waited_for_once) {
  ThreePlaces paper;
  paper.work.one_by_one(2);
  paper.work.together(4);
  EXPECT(paper.tape == "a.b.cabc.");
  EXPECT(paper.work.operations_at_once() == 1);
}

TEST(a_recorded_batch_begins_at_the_first_place_and_is_launched_as_a_whole) {
  ThreePlaces paper;
  paper.work.one_by_one(1);
  paper.work.record(4);
  EXPECT(paper.tape == "a.");
  EXPECT(paper.work.operations_at_once() == 4);
  paper.work.together(1);
  paper.work.together(2);
  EXPECT(paper.tape == "a.[abca].[abca][abca].");
}

TEST(the_timer_of_the_device_ends_before_the_last_wait) {
  ThreePlaces paper;
  paper.work.one_by_one(2, paper.work.device_timer());
  paper.work.together(2, paper.work.device_timer());
  paper.work.record(2);
  paper.work.together(1, paper.work.device_timer());
  EXPECT(paper.tape == "a.bE.caE.[ab]E.");
}

/// MPI's profiling interface: this one is called in place of the library's.
int MPI_Barrier(MPI_Comm communicator) {
  if (tape_of_barriers() != nullptr) *tape_of_barriers() += '|';
  return PMPI_Barrier(communicator);
}

TEST(steps_that_are_kept_apart_begin_when_all_ranks_have_ended_the_one_before) {
  for (const bool two : {true, false}) {
    Tape tape;
    const Backends backends{paper(tape, 'm'), two ? paper(tape, 'm') : nullptr, nullptr, nullptr};
    EXPECT(striped(tape, backends, Part::kept_apart) == "m.|m.|m.");
    tape.clear();
    EXPECT(striped(tape, backends, Part::kept_apart, 2) == "m.|m.|m.|m.|m.|m.");
    tape.clear();
    EXPECT(striped(tape, backends, Part::split, 2) == "m.m.");
  }
}

TEST(each_step_of_striping_goes_by_its_own_backend) {
  Tape tape;
  EXPECT(striped(tape, {paper(tape, 'm'), paper(tape, 'i'), paper(tape, 'b'), paper(tape, 'a')}) ==
         "i.b.a.");
  tape.clear();
  EXPECT(striped(tape, {paper(tape, 'm'), paper(tape, 'i'), paper(tape, 'b'), nullptr}) ==
         "i.b.i.");
  tape.clear();
  EXPECT(striped(tape, {paper(tape, 'm'), nullptr, nullptr, paper(tape, 'a')}) == "m.m.a.");
}

TEST(steps_of_striping_are_enqueued_together_where_all_go_by_one_backend) {
  Tape tape;
  EXPECT(striped(tape, {paper(tape, 'm'), nullptr, nullptr, nullptr}) == "mmm.");
}
