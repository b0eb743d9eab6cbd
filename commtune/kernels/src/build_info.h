#pragma once

namespace commtune {

/// What this executable was built from and with; CMake fills it in.
struct BuildInfo {
  const char* version;
  const char* compiler;
  const char* flags;
  const char* build_id;
};

BuildInfo build_info();

}  // namespace commtune
