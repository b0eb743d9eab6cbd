#pragma once

#include <mpi.h>

#include "error.h"

namespace commtune {

/// The MPI library's tools interface (MPI_T) is up as long as this lives.
class Tools {
 public:
  Tools() {
    int provided = 0;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) {
      throw Error("the MPI library's tools interface (MPI_T) does not start");
    }
  }
  ~Tools() { static_cast<void>(MPI_T_finalize()); }
  Tools(const Tools&) = delete;
  Tools& operator=(const Tools&) = delete;
};

}  // namespace commtune
