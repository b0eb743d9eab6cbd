#include "gpu/allocation.h"

#include "error.h"
#include "gpu/gpu.h"

#if !COMMTUNE_WITH_HIP
#include <cuda.h>
#include <dlfcn.h>

#include <string>
#endif

namespace commtune {

#if COMMTUNE_WITH_HIP

Allocation allocation_of(const std::byte* address) {
  hipDeviceptr_t base = nullptr;
  std::size_t bytes = 0;
  void* const inside = const_cast<std::byte*>(address);
  COMMTUNE_GPU_CALL(hipMemGetAddressRange(&base, &bytes, inside));
  return {static_cast<std::byte*>(base), bytes};
}

#else

namespace {

using GetAddressRange = CUresult (*)(CUdeviceptr*, std::size_t*, CUdeviceptr);

/// The runtime has no such call. The driver, which it has loaded, has: linking with the driver
/// would need one where the benchmark is built.
GetAddressRange find_get_address_range() {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) throw Error("libcuda.so.1 can't be loaded");
  void* const found = dlsym(driver, "cuMemGetAddressRange_v2");
  if (found == nullptr) throw Error("libcuda.so.1 has no cuMemGetAddressRange_v2");
  return reinterpret_cast<GetAddressRange>(found);
}

}  // namespace

Allocation allocation_of(const std::byte* address) {
  static const GetAddressRange get_address_range = find_get_address_range();
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  const CUresult result = get_address_range(&base, &bytes, reinterpret_cast<CUdeviceptr>(address));
  if (result != CUDA_SUCCESS) {
    throw Error("cuMemGetAddressRange failed with CUresult " + std::to_string(result));
  }
  const auto offset = reinterpret_cast<CUdeviceptr>(address) - base;
  return {const_cast<std::byte*>(address) - offset, bytes};
}

#endif

}  // namespace commtune
