#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "backends/memories.h"

namespace commtune {

/// Faults made on purpose, for the tests of programs that run this benchmark and have to cope
/// with one that fails. Nothing here is reached unless --fault asks for it.
struct Fault {
  enum class Kind { hang, crash, wrong, babble };
  Kind kind;
  std::size_t bytes;  ///< the size at which it happens
};

/// Reads KIND@BYTES; UsageError lists the kinds.
Fault parse_fault(std::string_view text);

/// Makes a hang (all ranks stop for ever) or a crash (the last rank aborts), if it is time.
void hang_or_crash(const std::optional<Fault>& fault, std::size_t bytes, bool is_last_rank);

/// Spoils the middle of what was received, before the check, if it is time.
void spoil_result(const std::optional<Fault>& fault, std::size_t bytes, Memory& memory,
                  std::byte* received, std::size_t received_bytes);

/// What a babbling benchmark adds to its records before this size; empty if it is not time.
/// It is a 1 MiB piece without sense, to be written `kBabblePieces` times.
std::string babble(const std::optional<Fault>& fault, std::size_t bytes);
constexpr int kBabblePieces = 96;

}  // namespace commtune
