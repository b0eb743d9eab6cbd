#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "error.h"

namespace commtune {

/// The words by which the command line and records name the values of an enum.
template <class Enum, std::size_t N>
struct Words {
  std::array<std::pair<Enum, std::string_view>, N> all;

  /// UsageError names the option and its legal words.
  Enum parse(const std::string& option, std::string_view text) const {
    std::string legal;
    for (const auto& [value, name] : all) {
      if (name == text) return value;
      legal.append(legal.empty() ? " is neither " : " nor ").append(name);
    }
    throw UsageError(option + ": '" + std::string(text) + "'" + legal);
  }

  constexpr std::string_view word(Enum wanted) const {
    for (const auto& [value, name] : all) {
      if (value == wanted) return name;
    }
    return {};
  }
};

}  // namespace commtune
