#pragma once

#include <cstddef>
#include <vector>

namespace commtune {

/// What one rank sends to another, or to itself. Offsets and count are in elements.
struct Message {
  int from;
  int to;
  std::size_t from_offset;  ///< in the sender's send buffer
  std::size_t to_offset;    ///< in the receiver's receive buffer
  std::size_t count;
};

/// Messages that may all be under way at once. Every rank knows at least those that it sends or
/// receives: between two ranks they are matched by their order.
using Exchange = std::vector<Message>;

}  // namespace commtune
