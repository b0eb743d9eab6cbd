#pragma once

namespace commtune {

/// How a rank waits for its stream. `stream`: in one call of the GPU's runtime. `poll`: it asks the
/// stream and the library in turn until the work is complete, as nccl-tests does; so a failure of
/// the network is seen at once.
enum class Waiting { stream, poll };

}  // namespace commtune
