#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "error.h"

namespace commtune {

/// Throws Error with place, expression and MPI's own words.
[[noreturn]] void fail_mpi(int code, const char* expression, const char* file, int line);

inline void check_mpi(int code, const char* expression, const char* file, int line) {
  if (code != MPI_SUCCESS) fail_mpi(code, expression, file, line);
}

}  // namespace commtune

#define COMMTUNE_MPI(call) ::commtune::check_mpi((call), #call, __FILE__, __LINE__)

namespace commtune {

/// How bytes get from one rank to another. Error where that fails.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Waits for all ranks, by the MPI library's own barrier.
  virtual void barrier() = 0;

  virtual void send(const void* data, std::size_t bytes, int to) = 0;

  /// Messages of a rank come in the order in which they were sent.
  virtual void receive(void* data, std::size_t bytes, int from) = 0;

  /// Bytes of the message that `receive` gets next, once it is there.
  virtual std::size_t next_bytes(int from) = 0;
};

/// Ranks that do something together, and how they agree outside of timed intervals: all ranks of
/// the run, or a part of them.
///
/// Agreement goes by point-to-point messages along a binomial tree: a configuration that breaks
/// a collective operation must not be able to hide that from its own check.
class World {
 public:
  /// All ranks: MPI is up as long as this lives. They use MPI_COMM_WORLD itself, whose setup
  /// libraries may treat otherwise than that of a communicator made later.
  World(int* argc, char*** argv);

  /// Those ranks of `whole` that give the same `part`, in the order of `order`, on a communicator
  /// of their own. All ranks of `whole` call it.
  World(const World& whole, int part, int order);

  /// As `whole`, in a process that MPI doesn't know: its rank's, forked.
  /// @param transport whatever goes to other ranks goes by it
  World(const World& whole, std::unique_ptr<Transport> transport);

  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_first() const { return rank_ == 0; }
  bool is_last() const { return rank_ == size_ - 1; }
  /// 0 in a process that MPI doesn't know.
  double init_s() const { return init_s_; }

  /// Whether this process is one that MPI doesn't know, forked by its rank's.
  bool is_forked() const { return communicator_ == MPI_COMM_NULL; }

  /// Error in a process that MPI doesn't know.
  MPI_Comm communicator() const;

  Transport& transport() const { return *transport_; }

  /// Whether another rank's message is there.
  bool has_message() const;

  /// Ends MPI, where this process has it, then the process: objects of functions that have not
  /// returned are not destroyed. All ranks call it, when records are written and closed. Launchers
  /// take a process without MPI_Finalize for one that failed.
  [[noreturn]] void end_process(int status) const;

  void barrier() const { transport_->barrier(); }

  /// Rank 0 gets the largest (smallest, sum) over ranks of each element; other ranks get what
  /// their branch of the tree came to.
  void max_to_first(std::vector<double>& values) const;
  void min_to_first(std::vector<double>& values) const;
  void sum_to_first(std::vector<std::uint64_t>& values) const;

  /// Everybody gets rank 0's value.
  template <class Value>
  Value from_first(Value value) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    spread(&value, sizeof value);
    return value;
  }
  std::string from_first(const std::string& text) const;

  /// Rank 0 gets the text of every rank, in their order; others get nothing.
  std::vector<std::string> gather(const std::string& text) const;

  /// The library's description of itself, first line; and the MPI standard it follows.
  static std::string library();
  static std::string standard();

 private:
  template <class Value, class Combine>
  void reduce_to_first(std::vector<Value>& values, Combine combine) const;
  void spread(void* data, std::size_t bytes) const;

  MPI_Comm communicator_ = MPI_COMM_WORLD;  ///< MPI_COMM_NULL in a process that MPI doesn't know
  std::unique_ptr<Transport> transport_;
  int rank_ = 0;
  int size_ = 1;
  double init_s_ = 0.0;
};

/// UsageError on all ranks with the first rank's problem, if any has one. All ranks call it.
void fail_together(const World& world, const std::optional<UsageError>& problem);

/// What `make` makes, where it can be made on all ranks. UsageError on all, else: none must wait
/// for the others for ever.
template <class Make>
auto made_together(const World& world, const Make& make) {
  std::optional<decltype(make())> made;
  std::optional<UsageError> problem;
  try {
    made.emplace(make());
  } catch (const UsageError& error) {
    problem = error;
  }
  fail_together(world, problem);
  return std::move(*made);
}

}  // namespace commtune
