#pragma once

#include <memory>

#include "backends/backend.h"
#include "backends/ipc/transfer.h"

namespace commtune {

/// Copies between GPUs of a node, through handles of each other's memory ("ipc-put", "ipc-get").
/// All ranks call it, each after its GPU was chosen. Its exchanges throw UsageError, on all ranks,
/// for messages to another node, and where a GPU's memory can't be mapped.
///
/// Nothing is timed by the device: the hosts take part in every exchange.
std::unique_ptr<Backend> make_ipc(const World& world, IpcDirection direction);

}  // namespace commtune
