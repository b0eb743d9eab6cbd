#include "operations/shape.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "cli/words.h"
#include "error.h"
#include "ranks/world.h"

namespace commtune {

namespace {

constexpr Words<Direction, 3> kDirections{{{{Direction::outbound, "outbound"},
                                            {Direction::bidirectional, "bidirectional"},
                                            {Direction::omnidirectional, "omnidirectional"}}}};

}  // namespace

std::string_view word(Direction direction) { return kDirections.word(direction); }

Direction parse_direction(const std::string& text) {
  return kDirections.parse("--direction", text);
}

std::vector<Flow> parse_flows(const std::string& text, const std::string& path) {
  std::istringstream lines(text);
  std::vector<Flow> flows;
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line.erase(std::min(line.find('#'), line.size()));
    std::istringstream words(line);
    Flow flow{};
    std::string more;
    if (!(words >> more)) continue;
    words = std::istringstream(line);
    if (!(words >> flow.from >> flow.to >> flow.bytes) || (words >> more) || flow.from < 0 ||
        flow.to < 0 || !(flow.bytes >= 0) || !std::isfinite(flow.bytes)) {
      throw UsageError(path + ":" + std::to_string(number) +
                       ": needs three numbers from 0: sender, receiver, bytes");
    }
    if (flow.bytes > 0) flows.push_back(flow);
  }
  if (flows.empty()) throw UsageError("--matrix: nobody sends anything in " + path);
  return flows;
}

std::vector<Flow> read_flows(const World& world, const std::string& path) {
  std::ostringstream text;
  bool is_read = false;
  if (world.is_first()) {
    std::ifstream file(path);
    // An empty file copies nothing, which is no failure to read it.
    is_read = file && (file.peek() == std::ifstream::traits_type::eof() || text << file.rdbuf());
    is_read = is_read && !file.bad();
  }
  if (!world.from_first(is_read)) throw UsageError("--matrix: can't read " + path);
  return parse_flows(world.from_first(text.str()), path);
}

void check_flows(const Shape& shape, int ranks) {
  if (shape.flows.empty()) throw UsageError("matrix needs --matrix FILE");
  for (const Flow& flow : shape.flows) {
    const int larger = std::max(flow.from, flow.to);
    if (larger >= ranks) {
      throw UsageError("--matrix: names rank " + std::to_string(larger) + ", but there are " +
                       std::to_string(ranks) + " ranks");
    }
  }
}

}  // namespace commtune
