#include "backends/own_messages.h"

namespace commtune {

std::vector<OwnMessage> own_messages(const Exchange& messages, int rank) {
  std::vector<OwnMessage> own;
  for (const Message& message : messages) {
    if (message.count == 0) continue;
    if (message.from == rank) {
      own.push_back({true, message.to, message.from_offset, message.count});
    }
    if (message.to == rank) {
      own.push_back({false, message.from, message.to_offset, message.count});
    }
  }
  return own;
}

std::vector<Range> ranges_of(const std::vector<OwnMessage>& messages, bool sent) {
  std::vector<Range> ranges;
  for (const OwnMessage& message : messages) {
    if (message.sends != sent) continue;
    if (!ranges.empty() && ranges.back().offset + ranges.back().count == message.offset) {
      ranges.back().count += message.count;
    } else {
      ranges.push_back({message.offset, message.count});
    }
  }
  return ranges;
}

std::vector<Range> ranges_of(const Layout& layout, int rank, bool sent) {
  const bool is_root = rank == 0;
  const bool is_idle = (layout.operation == Operation::broadcast && is_root != sent) ||
                       (layout.operation == Operation::reduce && !is_root && !sent);
  const std::size_t count = sent ? layout.send_count : layout.receive_count;
  if (is_idle || count == 0) return {};
  return {{0, count}};
}

}  // namespace commtune
