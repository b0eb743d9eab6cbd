# Finds NCCL (for CUDA) or RCCL (for HIP): header and library of one place, which compile and link.
# Reads COMMTUNE_XCCL (auto, on, off) and COMMTUNE_XCCL_ROOT; sets COMMTUNE_WITH_XCCL to 0 or 1,
# COMMTUNE_XCCL_SUMMARY to what was found or why nothing was, and makes the target commtune_xccl.

set(COMMTUNE_XCCL "auto" CACHE STRING "NCCL or RCCL: auto, on (an error without), off")
set_property(CACHE COMMTUNE_XCCL PROPERTY STRINGS auto on off)
set(COMMTUNE_XCCL_ROOT "" CACHE PATH "the NCCL or RCCL to use, the folder above include and lib")

if(COMMTUNE_GPU STREQUAL "cuda")
  set(xccl_name NCCL)
  set(xccl_header nccl.h)
  set(xccl_library nccl)
  # Beside CUDA's wheels, and in NVIDIA's HPC SDK.
  set(xccl_places $ENV{NCCL_HOME} $ENV{NCCL_ROOT} $ENV{NCCL_DIR} ${beside_include}
    ${beside_include}/../nccl ${beside_include}/../../comm_libs/nccl)
else()
  set(xccl_name RCCL)
  set(xccl_header rccl/rccl.h)
  set(xccl_library rccl)
  set(xccl_places $ENV{RCCL_HOME} $ENV{RCCL_ROOT} $ENV{RCCL_PATH} ${rocm_roots})
endif()
list(APPEND xccl_places /usr /usr/local)
if(COMMTUNE_XCCL_ROOT)
  set(xccl_places ${COMMTUNE_XCCL_ROOT})
endif()

# A header of one version must not be compiled with a library of another: both come from one place.
function(find_xccl_in place)
  find_path(include ${xccl_header} PATHS ${place}/include NO_DEFAULT_PATH NO_CACHE)
  # A wheel has only libnccl.so.2.
  find_library(library NAMES ${xccl_library} lib${xccl_library}.so.2 lib${xccl_library}.so.1
    PATHS ${place}/lib ${place}/lib64 ${place}/lib/${CMAKE_LIBRARY_ARCHITECTURE}
    NO_DEFAULT_PATH NO_CACHE)
  if(include AND library)
    get_filename_component(library "${library}" ABSOLUTE)
    get_filename_component(include "${include}" ABSOLUTE)
    set(xccl_include ${include} PARENT_SCOPE)
    set(xccl_file ${library} PARENT_SCOPE)
  endif()
endfunction()

function(xccl_version variable)
  set(version "")
  foreach(part MAJOR MINOR PATCH)
    file(STRINGS ${xccl_include}/${xccl_header} line REGEX "^#define NCCL_${part} +[0-9]+")
    string(REGEX MATCH "[0-9]+" number "${line}")
    list(APPEND version "${number}")
  endforeach()
  list(JOIN version "." version)
  set(${variable} "${version}" PARENT_SCOPE)
endfunction()

# The first error that a compiler or linker names, and what to do where that is known; may be empty.
function(why_xccl_fails variable said)
  string(REGEX MATCH "[^\n]*(error:|undefined reference|undefined symbol|cannot find )[^\n]*" line "${said}")
  string(STRIP "${line}" why)
  if(why)
    string(PREPEND why ": ")
  endif()
  if(line MATCHES "nv/target")
    # A part of toolkits, and a package of its own where these come as Python's, from CUDA 13 on.
    if(gpu_include MATCHES "-packages/" AND gpu_version VERSION_GREATER_EQUAL 13)
      string(REGEX MATCH "^[0-9]+\\.[0-9]+" release "${gpu_version}")
      set(fitting "~=${release}.0")
      if(release VERSION_GREATER_EQUAL 13.3) # from there on it is numbered by CCCL's own releases
        set(fitting "~=13.3")
      endif()
      string(APPEND why "; it is a part of CUDA: python -m pip install 'nvidia-cuda-cccl${fitting}'")
    else()
      string(APPEND why "; it is a part of CUDA (CCCL's libcu++) that is not in ${gpu_include}: load a whole toolkit, or install that part")
    endif()
  endif()
  set(${variable} "${why}" PARENT_SCOPE)
endfunction()

set(COMMTUNE_WITH_XCCL 0)
set(xccl_file "")
if(COMMTUNE_XCCL STREQUAL "off")
  set(COMMTUNE_XCCL_SUMMARY "it was left out by COMMTUNE_XCCL=off")
elseif(NOT COMMTUNE_XCCL MATCHES "^(auto|on)$")
  message(FATAL_ERROR "COMMTUNE_XCCL is auto, on or off, not '${COMMTUNE_XCCL}'")
else()
  foreach(place IN LISTS xccl_places)
    if(NOT xccl_file)
      find_xccl_in(${place})
    endif()
  endforeach()
  if(NOT xccl_file)
    string(REPLACE ";" " " places_in_words "${xccl_places}")
    set(COMMTUNE_XCCL_SUMMARY
      "${xccl_header} and lib${xccl_library}.so were not found together in any of: ${places_in_words}")
  else()
    set(probe ${CMAKE_CURRENT_BINARY_DIR}/xccl_probe)
    file(WRITE ${probe}.cpp "#include <${xccl_header}>
int main() { int version = 0; return ncclGetVersion(&version); }
")
    unset(COMMTUNE_XCCL_LINKS CACHE) # another XCCL may have been named since
    try_compile(COMMTUNE_XCCL_LINKS ${probe} SOURCES ${probe}.cpp
      CMAKE_FLAGS "-DINCLUDE_DIRECTORIES:STRING=${xccl_include};${gpu_include}"
      COMPILE_DEFINITIONS -D__HIP_PLATFORM_AMD__=1
      LINK_LIBRARIES ${xccl_file} ${gpu_libraries}
      OUTPUT_VARIABLE said)
    xccl_version(version)
    set(COMMTUNE_XCCL_SUMMARY "${xccl_name} ${version} ${xccl_file}")
    if(COMMTUNE_XCCL_LINKS)
      set(COMMTUNE_WITH_XCCL 1)
    else()
      message(STATUS "${COMMTUNE_XCCL_SUMMARY} doesn't compile and link:\n${said}")
      why_xccl_fails(why "${said}")
      string(APPEND COMMTUNE_XCCL_SUMMARY " doesn't compile and link${why}")
    endif()
  endif()
  if(COMMTUNE_XCCL STREQUAL "on" AND NOT COMMTUNE_WITH_XCCL)
    message(FATAL_ERROR "xccl: ${COMMTUNE_XCCL_SUMMARY}. Name its folder by -DCOMMTUNE_XCCL_ROOT, "
      "or build without by -DCOMMTUNE_XCCL=off")
  endif()
endif()

if(COMMTUNE_WITH_XCCL)
  add_library(commtune_xccl INTERFACE)
  target_include_directories(commtune_xccl SYSTEM INTERFACE ${xccl_include})
  target_link_libraries(commtune_xccl INTERFACE ${xccl_file})
endif()
