#include "operations/buffer_extent.h"

#include <algorithm>

#include "operations/steps.h"

namespace commtune {

BufferExtent extent_of_buffers(const Options& options, int ranks, int rank) {
  // No size needs more room than the largest.
  const std::size_t bytes = *std::max_element(options.sizes.begin(), options.sizes.end());
  Extent own{0, 0};
  Extent largest{0, 0};
  for (const Operation operation : operations_of(options)) {
    const Plan plan = plan_of(operation, options.type, bytes, ranks, options.shape);
    const Extent here = own_extent(plan, rank);
    own = {std::max(own.send, here.send), std::max(own.receive, here.receive)};
    largest.send = std::max(largest.send, plan.layout.send_count);
    largest.receive = std::max(largest.receive, plan.layout.receive_count);
  }
  const std::size_t common = std::min(largest.send, largest.receive);
  return {std::max(own.send, common), std::max(own.receive, common), common};
}

}  // namespace commtune
