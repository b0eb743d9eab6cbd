#pragma once

#include <string>

namespace commtune {

/// The number of ncclGetVersion in words: 22809 is "2.28.9", 2804 (up to 2.8 one digit less)
/// "2.8.4".
inline std::string nccl_version(int code) {
  const int major = code >= 10'000 ? code / 10'000 : code / 1'000;
  const int rest = code >= 10'000 ? code % 10'000 : code % 1'000;
  return std::to_string(major) + "." + std::to_string(rest / 100) + "." +
         std::to_string(rest % 100);
}

}  // namespace commtune
