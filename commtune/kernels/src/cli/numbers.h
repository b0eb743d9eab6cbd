#pragma once

#include <charconv>
#include <string>
#include <system_error>

#include "error.h"

namespace commtune {

/// The number that a text is. UsageError names `what` and the range where it is none from there.
template <class Number>
Number parse_number(const std::string& option, const std::string& text, Number low, Number high) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stopped != end || !(value >= low && value <= high)) {
    const std::string range = std::to_string(low) + " to " + std::to_string(high);
    throw UsageError(option + ": '" + text + "' is not a number from " + range);
  }
  return value;
}

}  // namespace commtune
