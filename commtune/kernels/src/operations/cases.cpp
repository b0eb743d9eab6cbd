#include "operations/cases.h"

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

bool has_messages(const Plan& plan, const Case& one, const std::vector<int>& node_of) {
  return one.part == Part::whole || bytes_of_part(plan, one.part, node_of) > 0;
}

}  // namespace commtune
