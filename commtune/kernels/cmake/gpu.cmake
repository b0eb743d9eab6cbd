# What GPU code is compiled and linked with. Reads COMMTUNE_GPU (cuda or hip), COMMTUNE_GPU_ROOT,
# COMMTUNE_GPU_ARCHITECTURES, COMMTUNE_GPU_FLAGS and CMAKE_CUDA_COMPILER or CMAKE_HIP_COMPILER;
# makes the target commtune_gpu, which carries headers and runtime, and sets COMMTUNE_GPU_SUMMARY and
# COMMTUNE_KERNELS_OBJECT, the compiled src/gpu/kernels.cu.
#
# CMake's own languages CUDA and HIP are not used: only one file needs a device compiler, and
# CMake's checks link test programs, which fails where nvcc comes as a Python wheel (it looks for
# the libraries in lib64, the wheel has lib).

set(COMMTUNE_GPU_ROOT "" CACHE PATH "the CUDA or ROCm to use, the folder above bin and include")
set(COMMTUNE_GPU_ARCHITECTURES "" CACHE STRING
  "what to build device code for, for instance 80;90 or gfx90a;gfx942; those of this machine's GPUs by default")

if(COMMTUNE_GPU STREQUAL "cuda")
  set(COMMTUNE_GPU_FLAGS "$ENV{CUDAFLAGS}" CACHE STRING "further flags of nvcc")
  include(cmake/cuda.cmake)
else()
  set(COMMTUNE_GPU_FLAGS "$ENV{HIPFLAGS}" CACHE STRING "further flags of hipcc")
  include(cmake/hip.cmake)
endif()
separate_arguments(gpu_flags UNIX_COMMAND "${COMMTUNE_GPU_FLAGS}")

list(JOIN gpu_architectures " " architectures_in_words)
set(kernels_source ${CMAKE_CURRENT_SOURCE_DIR}/src/gpu/kernels.cu)
set(COMMTUNE_KERNELS_OBJECT ${CMAKE_CURRENT_BINARY_DIR}/kernels.o)
add_custom_command(
  OUTPUT ${COMMTUNE_KERNELS_OBJECT}
  COMMAND ${gpu_compile} ${gpu_flags} -std=c++17 -O2 -I${CMAKE_CURRENT_SOURCE_DIR}/src
    -DCOMMTUNE_WITH_GPU=1 -DCOMMTUNE_WITH_HIP=$<STREQUAL:${COMMTUNE_GPU},hip>
    -MD -MF ${COMMTUNE_KERNELS_OBJECT}.d -c ${kernels_source} -o ${COMMTUNE_KERNELS_OBJECT}
  DEPENDS ${kernels_source}
  DEPFILE ${COMMTUNE_KERNELS_OBJECT}.d
  COMMENT "Compiling src/gpu/kernels.cu for ${architectures_in_words}"
  VERBATIM)
set_source_files_properties(${COMMTUNE_KERNELS_OBJECT} PROPERTIES EXTERNAL_OBJECT ON)

add_library(commtune_gpu INTERFACE)
target_include_directories(commtune_gpu SYSTEM INTERFACE ${gpu_include})
target_link_libraries(commtune_gpu INTERFACE ${gpu_libraries})
if(COMMTUNE_GPU STREQUAL "hip")
  target_compile_definitions(commtune_gpu INTERFACE __HIP_PLATFORM_AMD__=1)
endif()

set(COMMTUNE_GPU_COMPILER "${gpu_name} ${gpu_version}")
set(COMMTUNE_GPU_SUMMARY
  "${gpu_name} ${gpu_version} ${gpu_compiler} for ${architectures_in_words}")
