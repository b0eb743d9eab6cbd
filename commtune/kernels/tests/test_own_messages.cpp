#include "backends/own_messages.h"
#include "backends/xccl/version.h"
#include "harness.h"

using namespace commtune;

namespace {

bool is(const OwnMessage& message, bool sends, int peer, std::size_t offset, std::size_t count) {
  return message.sends == sends && message.peer == peer && message.offset == offset &&
         message.count == count;
}

bool is(const Range& range, std::size_t offset, std::size_t count) {
  return range.offset == offset && range.count == count;
}

/// From, to, where from, where to, elements.
const Exchange kAll{{0, 1, 10, 20, 5}, {1, 0, 11, 21, 6}, {1, 1, 12, 22, 7},
                    {2, 0, 13, 23, 8}, {0, 1, 14, 24, 0}, {0, 1, 15, 25, 9}};

}  // namespace

TEST(a_rank_does_its_part_in_the_order_of_the_messages) {
  const auto own = own_messages(kAll, 1);
  EXPECT(own.size() == 5);
  EXPECT(is(own[0], false, 0, 20, 5));
  EXPECT(is(own[1], true, 0, 11, 6));
  EXPECT(is(own[2], true, 1, 12, 7));
  EXPECT(is(own[3], false, 1, 22, 7));
  EXPECT(is(own[4], false, 0, 25, 9));
}

TEST(two_ranks_match_their_messages) {
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 3; ++b) {
      std::vector<std::size_t> sent;
      std::vector<std::size_t> received;
      for (const OwnMessage& message : own_messages(kAll, a)) {
        if (message.sends && message.peer == b) sent.push_back(message.count);
      }
      for (const OwnMessage& message : own_messages(kAll, b)) {
        if (!message.sends && message.peer == a) received.push_back(message.count);
      }
      EXPECT(sent == received);
    }
  }
}

TEST(others_have_nothing_to_do) {
  EXPECT(own_messages(kAll, 3).empty());
  EXPECT(own_messages({{0, 1, 0, 0, 0}}, 1).empty());
}

TEST(adjacent_messages_are_one_range) {
  const std::vector<OwnMessage> own{
      {true, 0, 4, 4}, {false, 0, 8, 1}, {true, 1, 8, 4}, {true, 2, 20, 1}, {false, 1, 9, 2}};
  const auto sent = ranges_of(own, true);
  EXPECT(sent.size() == 2);
  EXPECT(is(sent[0], 4, 8));
  EXPECT(is(sent[1], 20, 1));
  const auto received = ranges_of(own, false);
  EXPECT(received.size() == 1);
  EXPECT(is(received[0], 8, 3));
}

TEST(what_is_sent_twice_is_there_twice) {
  const auto sent = ranges_of({{true, 1, 0, 4}, {true, 1, 0, 4}, {true, 1, 0, 4}}, true);
  EXPECT(sent.size() == 3);
  EXPECT(is(sent[2], 0, 4));
}

TEST(what_ranks_send_and_receive_in_collective_operations) {
  Layout layout{};
  layout.send_count = 3;
  layout.receive_count = 12;
  const auto has = [&layout](Operation operation, int rank, bool sent) {
    layout.operation = operation;
    const auto ranges = ranges_of(layout, rank, sent);
    return ranges.size() == 1 && is(ranges[0], 0, sent ? 3 : 12);
  };
  const auto none = [&layout](Operation operation, int rank, bool sent) {
    layout.operation = operation;
    return ranges_of(layout, rank, sent).empty();
  };
  for (const int rank : {0, 1}) {
    EXPECT(has(Operation::allgather, rank, true));
    EXPECT(has(Operation::allgather, rank, false));
    EXPECT(has(Operation::reduce, rank, true));
  }
  EXPECT(has(Operation::reduce, 0, false) && none(Operation::reduce, 1, false));
  EXPECT(has(Operation::broadcast, 0, true) && none(Operation::broadcast, 1, true));
  EXPECT(none(Operation::broadcast, 0, false) && has(Operation::broadcast, 1, false));
}

TEST(versions_of_nccl_in_words) {
  EXPECT(nccl_version(22809) == "2.28.9");
  EXPECT(nccl_version(20900) == "2.9.0");
  EXPECT(nccl_version(2804) == "2.8.4");
  EXPECT(nccl_version(21301) == "2.13.1");
}
