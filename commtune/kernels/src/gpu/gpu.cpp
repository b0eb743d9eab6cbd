#include "gpu/gpu.h"

#include <string>

#include "error.h"

namespace commtune {

void fail_gpu(gpuError_t code, const char* expression, const char* file, int line) {
  // An error that isn't fetched would be reported again by the next call that looks for one.
  static_cast<void>(gpuGetLastError());
  throw Error(std::string(file) + ":" + std::to_string(line) + ": " + expression + ": " +
              gpuGetErrorName(code) + ": " + gpuGetErrorString(code));
}

}  // namespace commtune
