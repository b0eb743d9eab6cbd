#pragma once

#include <cstddef>
#include <vector>

#include "operations/messages.h"
#include "operations/operations.h"

namespace commtune {

/// What one rank does for a message: it sends or receives it.
struct OwnMessage {
  bool sends;
  int peer;            ///< the other end; this rank itself for a message to oneself
  std::size_t offset;  ///< elements, in this rank's send or receive buffer
  std::size_t count;   ///< elements; at least one
};

/// The part of a rank, in the messages' order, by which two ranks match theirs. A message to
/// oneself is sent, then received. Messages without elements are left out, on both sides.
std::vector<OwnMessage> own_messages(const Exchange& messages, int rank);

/// Elements of a buffer that follow each other.
struct Range {
  std::size_t offset;
  std::size_t count;
};

/// Where the messages that are sent (or received) lie. What is adjacent in their order is one
/// range; what lies at the same place twice is there twice, as it is communicated twice.
std::vector<Range> ranges_of(const std::vector<OwnMessage>& messages, bool sent);

/// Likewise for what a rank sends (receives) in a collective operation: one range, or none where
/// the rank is not the root, or is. The root is rank 0.
std::vector<Range> ranges_of(const Layout& layout, int rank, bool sent);

}  // namespace commtune
