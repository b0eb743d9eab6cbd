#pragma once

#include <cstddef>
#include <cstdint>

/// What of NCCL's tuner plugin interface is used here, versions 4 to 6. Our own text, after what
/// NCCL 2.30.7 publishes in src/include/plugin/tuner/tuner_v{4,5,6}.h and
/// src/include/nccl_common.h. The numbers of collectives, algorithms and protocols are the same in
/// all releases with these versions.
namespace nccl {

enum Result : int { kSuccess = 0, kSystemError = 2, kInternalError = 3, kInvalidUsage = 5 };

enum LogLevel : int { kWarn = 2, kInfo = 3 };

constexpr unsigned long kLogInit = 0x1;
constexpr unsigned long kLogTuning = 0x40;

using Logger = void (*)(LogLevel, unsigned long subsystems, const char* file, int line,
                        const char* format, ...);

// Costs are rows of algorithms with a column for each protocol, one after another in memory; what
// can't be used is below 0. The pointer's type is NCCL's; it points at the first number.
using GetCollInfo = Result (*)(void* context, int collective, size_t bytes, int pipe_operations,
                               float** costs, int algorithms, int protocols, int is_registered,
                               int* channels);
using Finalize = Result (*)(void* context);
using InitV5 = Result (*)(void** context, uint64_t communicator, size_t ranks, size_t nodes,
                          Logger logger, void* nvlink_domains, void* constants);

struct TunerV4 {
  const char* name;
  Result (*init)(size_t ranks, size_t nodes, Logger logger, void** context);
  GetCollInfo get_coll_info;
  Finalize destroy;
};

struct TunerV5 {
  const char* name;
  InitV5 init;
  GetCollInfo get_coll_info;
  Finalize finalize;
};

struct TunerV6 {
  const char* name;
  InitV5 init;
  GetCollInfo get_coll_info;
  Finalize finalize;
  /// May be absent: then the size of chunks is NCCL's.
  Result (*get_chunk_size)(void* context, int collective, size_t bytes, int algorithm, int protocol,
                           int channels, size_t* chunk_bytes);
};

}  // namespace nccl
