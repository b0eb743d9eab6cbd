#include "cases.h"

namespace commtune {

std::vector<Case> cases_of(const Options& options, const Backends& backends, int ranks) {
  std::vector<Case> cases;
  if (options.operation != Operation::pairs) {
    for (const Part part : parts_of(options, backends)) {
      cases.push_back({part, options.shape, std::nullopt});
    }
    return cases;
  }
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      if (from == to) continue;
      Shape shape = options.shape;
      shape.first = from;
      shape.second = to;
      cases.push_back({Part::whole, shape, std::pair{from, to}});
    }
  }
  return cases;
}

bool has_messages(const Options& options, std::size_t bytes, const Case& one,
                  const std::vector<int>& node_of) {
  if (one.part == Part::whole) return true;
  const int ranks = static_cast<int>(node_of.size());
  const Layout layout = lay_out(options.operation, options.type, bytes, ranks, one.shape);
  return bytes_of_part(layout, one.shape, one.part, node_of) > 0;
}

}  // namespace commtune
