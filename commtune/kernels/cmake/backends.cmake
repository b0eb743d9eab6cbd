# Says which backends are in the executable and why others are not, and writes it to backends.txt:
# lines of "NAME yes DETAIL" and "NAME no: REASON".

set(backends_text "mpi-host yes\n")
if(COMMTUNE_WITH_GPU)
  foreach(backend mpi-device mpi-staged ipc-put ipc-get)
    string(APPEND backends_text "${backend} yes ${COMMTUNE_GPU_SUMMARY}\n")
  endforeach()
  if(COMMTUNE_WITH_XCCL)
    string(APPEND backends_text "xccl yes ${COMMTUNE_XCCL_SUMMARY}\n")
  else()
    string(APPEND backends_text "xccl no: ${COMMTUNE_XCCL_SUMMARY}\n")
  endif()
else()
  foreach(backend mpi-device mpi-staged ipc-put ipc-get xccl)
    string(APPEND backends_text "${backend} no: built without GPUs (COMMTUNE_GPU=none)\n")
  endforeach()
endif()
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/backends.txt "${backends_text}")

string(STRIP "${backends_text}" backends_text)
string(REPLACE "\n" "\n--   " backends_text "${backends_text}")
message(STATUS "Backends:\n--   ${backends_text}")
