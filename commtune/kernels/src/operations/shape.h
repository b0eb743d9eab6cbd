#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace commtune {

class World;

/// Which way messages of a pattern of groups go.
enum class Direction {
  outbound,        ///< from the first group to all others
  bidirectional,   ///< and back at the same time
  omnidirectional  ///< from every group to every other
};

std::string_view word(Direction direction);
Direction parse_direction(const std::string& text);

/// What one rank sends another, as a matrix file says it; bytes are relative.
struct Flow {
  int from;
  int to;
  double bytes;
};

/// What patterns need beside a size. Groups are of consecutive ranks.
struct Shape {
  int window = 64;     ///< stream: messages under way
  int group_size = 1;  ///< ranks of a group (of a node, as a rule)
  int active = 1;      ///< ranks of a group that send
  Direction direction = Direction::outbound;
  int first = 0;            ///< pairs: the sender
  int second = 1;           ///< pairs: the receiver
  std::vector<Flow> flows;  ///< matrix
};

/// Reads the text of a matrix file: lines "FROM TO BYTES", # begins a comment.
/// @param path for what is wrong: UsageError names file and line
std::vector<Flow> parse_flows(const std::string& text, const std::string& path);

/// Rank 0 reads a matrix file for all: on another node it may be missing, or another one. All ranks
/// call it; UsageError on all of them where it can't be read.
std::vector<Flow> read_flows(const World& world, const std::string& path);

/// UsageError where a flow names a rank that there is not.
void check_flows(const Shape& shape, int ranks);

}  // namespace commtune
