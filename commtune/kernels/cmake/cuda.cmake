# Sets gpu_name, gpu_version, gpu_compiler, gpu_compile (a command), gpu_architectures, gpu_include
# and gpu_libraries for CUDA.

if(CMAKE_CUDA_COMPILER)
  set(gpu_compiler ${CMAKE_CUDA_COMPILER})
else()
  find_program(COMMTUNE_NVCC nvcc
    HINTS ${COMMTUNE_GPU_ROOT} ENV CUDA_HOME ENV CUDA_PATH ENV CUDA_ROOT
    PATHS /usr/local/cuda /opt/cuda
    PATH_SUFFIXES bin)
  if(NOT COMMTUNE_NVCC)
    message(FATAL_ERROR "there is no nvcc: load your site's CUDA module, or name the CUDA to use "
      "by -DCOMMTUNE_GPU_ROOT")
  endif()
  set(gpu_compiler ${COMMTUNE_NVCC})
endif()

execute_process(COMMAND ${gpu_compiler} --version
  OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE failed)
if(failed OR NOT said MATCHES "release [0-9.]+, V([0-9.]+)")
  message(FATAL_ERROR "${gpu_compiler} --version doesn't say a version of CUDA:\n${said}")
endif()
set(gpu_name CUDA)
set(gpu_version ${CMAKE_MATCH_1})
# The first that knows -arch=all-major. Since 11.4 graphs are made as HIP makes them (graph.cpp).
if(gpu_version VERSION_LESS 11.5)
  message(FATAL_ERROR "${gpu_compiler} is of CUDA ${gpu_version}, and 11.5 is the oldest that will "
    "do: load a newer module, or name another CUDA by -DCOMMTUNE_GPU_ROOT")
endif()

# Where the toolkit is: nvcc itself may be a script or a link, in /usr/bin or in a compiler's folder.
execute_process(COMMAND ${gpu_compiler} --dryrun -x cu nothing.cu
  OUTPUT_VARIABLE said ERROR_VARIABLE said)
set(cuda_top "")
if(said MATCHES "TOP=([^\r\n]+)")
  string(STRIP "${CMAKE_MATCH_1}" cuda_top)
  get_filename_component(cuda_top "${cuda_top}" REALPATH)
endif()
set(cuda_roots ${COMMTUNE_GPU_ROOT} ${cuda_top})
# Some distributions keep headers and libraries apart for each processor.
set(cuda_target x86_64-linux)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(cuda_target sbsa-linux)
endif()

# Modules put all that they have into CMAKE_PREFIX_PATH, which would come before the toolkit named.
find_path(COMMTUNE_CUDA_INCLUDE cuda_runtime_api.h HINTS ${cuda_roots}
  PATH_SUFFIXES include targets/${cuda_target}/include NO_CMAKE_ENVIRONMENT_PATH)
if(NOT COMMTUNE_CUDA_INCLUDE)
  message(FATAL_ERROR "cuda_runtime_api.h is not below ${cuda_roots}: is the runtime of CUDA "
    "installed beside its compiler (with pip: nvidia-cuda-runtime)?")
endif()
set(gpu_include ${COMMTUNE_CUDA_INCLUDE})

# The shared runtime, as MPI libraries that watch memory being allocated expect it. Python's wheels
# have no link without a number.
string(REGEX MATCH "^[0-9]+" cuda_major ${gpu_version})
get_filename_component(beside_include ${gpu_include}/.. REALPATH)
find_library(COMMTUNE_CUDART NAMES cudart libcudart.so.${cuda_major} libcudart.so.${cuda_major}.0
  HINTS ${beside_include} ${cuda_roots} PATH_SUFFIXES lib64 lib NO_CMAKE_ENVIRONMENT_PATH)
if(NOT COMMTUNE_CUDART)
  message(FATAL_ERROR "libcudart.so is not below ${beside_include}")
endif()
set(gpu_libraries ${COMMTUNE_CUDART})

set(gpu_architectures ${COMMTUNE_GPU_ARCHITECTURES})
if(NOT gpu_architectures)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    OUTPUT_VARIABLE said ERROR_QUIET)
  string(REGEX MATCHALL "[0-9]+\\.[0-9]+" gpu_architectures "${said}")
  list(TRANSFORM gpu_architectures REPLACE "\\." "")
  list(REMOVE_DUPLICATES gpu_architectures)
endif()
set(generate "")
if(gpu_architectures)
  list(TRANSFORM gpu_architectures REPLACE "^sm_" "")
  list(SORT gpu_architectures COMPARE NATURAL)
  foreach(architecture IN LISTS gpu_architectures)
    if(NOT architecture MATCHES "^[0-9]+[af]?$")
      message(FATAL_ERROR "'${architecture}' is no architecture of CUDA: 80 is A100, 90 is H100")
    endif()
    list(APPEND generate -gencode arch=compute_${architecture},code=sm_${architecture})
  endforeach()
else()
  # No GPU is here, as on a login node: one for each generation that this nvcc knows.
  set(gpu_architectures all-major)
  set(generate -arch=all-major)
endif()

set(gpu_compile ${gpu_compiler} ${generate} -Xcompiler=-fPIC,-Wall,-Wextra)
if(CMAKE_COMPILE_WARNING_AS_ERROR)
  list(APPEND gpu_compile -Werror=all-warnings -Xcompiler=-Werror)
endif()
