#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "operations/messages.h"
#include "operations/shape.h"

namespace commtune {

enum class Operation {
  ping_pong,
  bidirectional,
  stream,
  allreduce,
  reduce,
  broadcast,
  allgather,
  reduce_scatter,
  alltoall,
  ring,
  incast,
  one_to_many,
  self,
  rail,
  asymmetric,
  symmetric,
  pairs,
  matrix,
  striping
};

enum class DataType { float32, float64, int32, uint8 };

enum class Reduction { sum, max };

/// The word for each value, as used on the command line and in records.
std::string_view word(Operation operation);
std::string_view word(DataType type);
std::string_view word(Reduction reduction);

/// The value of a word; UsageError lists the legal words.
Operation parse_operation(std::string_view text);
DataType parse_data_type(std::string_view text);
Reduction parse_reduction(std::string_view text);

std::size_t size_of(DataType type);

bool reduces(Operation operation);

/// Whether MPI or *CCL have a call for it; the others are made of messages, alltoall can be.
bool is_collective(Operation operation);

/// What a message size means for an operation and a number of ranks.
struct Layout {
  Operation operation;
  DataType type;
  int ranks;
  std::size_t bytes;           ///< as asked for
  std::size_t count;           ///< elements of one block: what the call is given as its count
  std::size_t bytes_per_rank;  ///< see docs/benchmark.md
  std::size_t bytes_per_peer;  ///< what one rank gives to one other rank
  std::size_t bytes_total;     ///< what bandwidths are computed from
  std::size_t send_count;      ///< elements of the send buffer, of the rank with the largest
  std::size_t receive_count;   ///< elements of the receive buffer, likewise
  std::string_view meaning;    ///< "per-rank" or "total": what `bytes` counts
};

/// An operation at one size with its messages, which are made once: dense patterns of many ranks
/// have millions of them.
struct Plan {
  Layout layout;
  std::vector<Exchange> steps;  ///< each after the one before; none of a collective operation
};

/// Plans `bytes` over `ranks`. Where bytes are a total they are rounded down to whole elements
/// for every rank, but never to none. UsageError if `bytes` don't hold a single element.
/// No size needs larger buffers than a larger one.
Plan plan_of(Operation operation, DataType type, std::size_t bytes, int ranks,
             const Shape& shape = {});

/// The layout alone.
Layout lay_out(Operation operation, DataType type, std::size_t bytes, int ranks,
               const Shape& shape = {});

/// UsageError where an operation can't be done by so many ranks.
void check_ranks(Operation operation, int ranks, const Shape& shape);

/// Bus bandwidth / algorithm bandwidth (factors of nccl-tests, doc/PERFORMANCE.md there).
double bus_factor(Operation operation, int ranks);

/// Share of the timed interval that is one operation: a ping-pong is half of its round trip.
double time_share(Operation operation);

}  // namespace commtune
