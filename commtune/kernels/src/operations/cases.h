#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "cli/options.h"
#include "operations/work.h"

namespace commtune {

/// What is measured at each size: parts of an operation, or one pair of ranks after the other.
struct Case {
  Part part;
  Shape shape;
  std::optional<std::pair<int, int>> pair;
};

/// In the order in which they are measured at each size.
std::vector<Case> cases_of(const Options& options, const Backends& backends, int ranks);

/// A part may have nothing to do: messages between nodes where there is one node.
bool has_messages(const Plan& plan, const Case& one, const std::vector<int>& node_of);

}  // namespace commtune
