#include "operations/fault_injection.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>

#include "error.h"

namespace commtune {

namespace {

bool is_due(const std::optional<Fault>& fault, Fault::Kind kind, std::size_t bytes) {
  return fault && fault->kind == kind && fault->bytes == bytes;
}

Fault::Kind parse_kind(std::string_view text) {
  if (text == "hang") return Fault::Kind::hang;
  if (text == "crash") return Fault::Kind::crash;
  if (text == "wrong") return Fault::Kind::wrong;
  if (text == "babble") return Fault::Kind::babble;
  throw UsageError("unknown fault '" + std::string(text) + "'; one of: hang, crash, wrong, babble");
}

}  // namespace

Fault parse_fault(std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) {
    throw UsageError("--fault needs KIND@BYTES, not '" + std::string(text) + "'");
  }
  Fault fault{parse_kind(text.substr(0, at)), 0};
  const std::string_view number = text.substr(at + 1);
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), fault.bytes);
  if (error != std::errc{} || end != number.data() + number.size()) {
    throw UsageError("--fault: '" + std::string(number) + "' is not a number of bytes");
  }
  return fault;
}

void hang_or_crash(const std::optional<Fault>& fault, std::size_t bytes, bool is_last_rank) {
  while (is_due(fault, Fault::Kind::hang, bytes)) pause();
  if (is_due(fault, Fault::Kind::crash, bytes) && is_last_rank) {
    usleep(200'000);  // the first rank may still be writing the size before
    std::abort();
  }
}

void spoil_result(const std::optional<Fault>& fault, std::size_t bytes, Memory& memory,
                  std::byte* received, std::size_t received_bytes) {
  if (!is_due(fault, Fault::Kind::wrong, bytes) || received_bytes == 0) return;
  std::byte* place = received + received_bytes / 2;
  std::byte value{};
  memory.copy_out(&value, place, 1);
  value ^= std::byte{0x40};
  memory.copy_in(place, &value, 1);
}

std::string babble(const std::optional<Fault>& fault, std::size_t bytes) {
  if (!is_due(fault, Fault::Kind::babble, bytes)) return {};
  std::string piece;
  while (piece.size() < (std::size_t{1} << 20)) piece += "{\"record\": blah, blah ";
  return piece;
}

}  // namespace commtune
