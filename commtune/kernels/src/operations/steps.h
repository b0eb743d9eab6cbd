#pragma once

#include <cstddef>
#include <vector>

#include "operations/messages.h"
#include "operations/operations.h"

namespace commtune {

/// An operation as messages: exchanges that follow each other, each after the one before is
/// complete. Needs operation, ranks and count of the layout only. Error for collective operations.
std::vector<Exchange> steps_of(const Layout& layout, const Shape& shape);

/// The messages of an alltoall that a rank sends or receives: those of all ranks together would be
/// gigabytes where there are thousands.
Exchange own_part_of_alltoall(int ranks, std::size_t count, int rank);

/// What a rank's receive buffer holds in the end, each place once: messages whose data was not
/// passed on. Empty for collective operations.
std::vector<Message> received_in(const Plan& plan, const Shape& shape, int rank);

/// The receiver of what is received last; of operations made of messages.
int last_receiver(const Plan& plan, const Shape& shape);

/// Whether the pattern is one of groups.
bool is_grouped(Operation operation);

/// Elements that the largest send and receive buffers need.
struct Extent {
  std::size_t send;
  std::size_t receive;
};
Extent extent_of(const std::vector<Exchange>& steps);

/// Elements that a rank's own buffers need: of collective operations, as many as anybody's.
Extent own_extent(const Plan& plan, int rank);

/// Elements that enter or leave the first group; all elements of all messages.
std::size_t boundary_count(const std::vector<Exchange>& steps, const Shape& shape);
std::size_t whole_count(const std::vector<Exchange>& steps);

}  // namespace commtune
