# Sets gpu_name, gpu_version, gpu_compiler, gpu_compile (a command), gpu_architectures, gpu_include
# and gpu_libraries for HIP on AMD's GPUs.

set(rocm_roots ${COMMTUNE_GPU_ROOT} $ENV{ROCM_PATH} $ENV{HIP_PATH})
if(CMAKE_HIP_COMPILER)
  set(gpu_compiler ${CMAKE_HIP_COMPILER})
else()
  find_program(COMMTUNE_HIPCC hipcc HINTS ${rocm_roots} PATHS /opt/rocm PATH_SUFFIXES bin)
  if(NOT COMMTUNE_HIPCC)
    message(FATAL_ERROR "there is no hipcc: load your site's ROCm module, or name the ROCm to use "
      "by -DCOMMTUNE_GPU_ROOT")
  endif()
  set(gpu_compiler ${COMMTUNE_HIPCC})
endif()

execute_process(COMMAND ${gpu_compiler} --version
  OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE failed)
if(failed OR NOT said MATCHES "HIP version: ([0-9.]+)")
  message(FATAL_ERROR "${gpu_compiler} --version doesn't say a version of HIP:\n${said}")
endif()
set(gpu_name HIP)
set(gpu_version ${CMAKE_MATCH_1})

get_filename_component(above_hipcc "${gpu_compiler}" REALPATH)
get_filename_component(above_hipcc "${above_hipcc}/../.." REALPATH)
list(APPEND rocm_roots ${above_hipcc} /opt/rocm)
# Modules put all that they have into CMAKE_PREFIX_PATH, which would come before the toolkit named.
find_path(COMMTUNE_HIP_INCLUDE hip/hip_runtime_api.h HINTS ${rocm_roots}
  PATH_SUFFIXES include NO_CMAKE_ENVIRONMENT_PATH)
find_library(COMMTUNE_AMDHIP amdhip64 HINTS ${rocm_roots}
  PATH_SUFFIXES lib lib64 NO_CMAKE_ENVIRONMENT_PATH)
foreach(found COMMTUNE_HIP_INCLUDE COMMTUNE_AMDHIP)
  if(NOT ${found})
    message(FATAL_ERROR "hip/hip_runtime_api.h or libamdhip64.so is not below ${rocm_roots}")
  endif()
endforeach()
set(gpu_include ${COMMTUNE_HIP_INCLUDE})
set(gpu_libraries ${COMMTUNE_AMDHIP})

set(gpu_architectures ${COMMTUNE_GPU_ARCHITECTURES})
if(NOT gpu_architectures)
  # The kernel's driver says 90010 for gfx90a: a decimal number, then two hexadecimal digits.
  file(GLOB agents /sys/class/kfd/kfd/topology/nodes/*/properties)
  foreach(agent IN LISTS agents)
    file(READ ${agent} properties)
    if(properties MATCHES "gfx_target_version ([1-9][0-9]*)")
      math(EXPR major "${CMAKE_MATCH_1} / 10000")
      math(EXPR minor "${CMAKE_MATCH_1} / 100 % 100" OUTPUT_FORMAT HEXADECIMAL)
      math(EXPR stepping "${CMAKE_MATCH_1} % 100" OUTPUT_FORMAT HEXADECIMAL)
      string(REPLACE "0x" "" digits "${minor}${stepping}")
      list(APPEND gpu_architectures gfx${major}${digits})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES gpu_architectures)
endif()
if(NOT gpu_architectures)
  # No GPU is here, as on a login node: those of the large machines that this hipcc knows.
  set(probe ${CMAKE_CURRENT_BINARY_DIR}/probe.hip)
  file(WRITE ${probe} "")
  foreach(architecture gfx908 gfx90a gfx942 gfx950)
    execute_process(COMMAND ${gpu_compiler} -x hip --offload-arch=${architecture} -c ${probe}
      -o ${probe}.o RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(NOT failed)
      list(APPEND gpu_architectures ${architecture})
    endif()
  endforeach()
endif()
if(NOT gpu_architectures)
  message(FATAL_ERROR "there is no GPU here to build for, and ${gpu_compiler} compiles for none of "
    "gfx908, gfx90a, gfx942, gfx950: name one by -DCOMMTUNE_GPU_ARCHITECTURES")
endif()

set(gpu_compile ${gpu_compiler} -x hip -fPIC -Wall -Wextra)
foreach(architecture IN LISTS gpu_architectures)
  if(NOT architecture MATCHES "^gfx[0-9a-f]+(:[a-z+:-]+)?$")
    message(FATAL_ERROR "'${architecture}' is no architecture of AMD: gfx90a is MI250X, gfx942 is "
      "MI300")
  endif()
  list(APPEND gpu_compile --offload-arch=${architecture})
endforeach()
if(CMAKE_COMPILE_WARNING_AS_ERROR)
  list(APPEND gpu_compile -Werror)
endif()
