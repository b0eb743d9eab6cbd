#pragma once

#include <mpi.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace commtune {

/// What a rank sent to each of the others, as Open MPI's pml/monitoring counts it (MPI_T): inside
/// of collective operations too, so that algorithms and their segments show. It counts only under
/// OMPI_MCA_pml_monitoring_enable=1; no other library has it.
class MessageCounts {
 public:
  explicit MessageCounts(MPI_Comm communicator);
  ~MessageCounts();
  MessageCounts(const MessageCounts&) = delete;
  MessageCounts& operator=(const MessageCounts&) = delete;

  /// Messages to each rank, then bytes to each rank, since the start; nothing where the library
  /// doesn't count.
  std::optional<std::vector<unsigned long>> read() const;

 private:
  /// Whether the handle of a counter could be had.
  bool open(const char* name, MPI_T_pvar_handle& handle);

  MPI_Comm communicator_;
  std::size_t ranks_ = 0;
  MPI_T_pvar_session session_ = MPI_T_PVAR_SESSION_NULL;
  MPI_T_pvar_handle messages_ = MPI_T_PVAR_HANDLE_NULL;
  MPI_T_pvar_handle bytes_ = MPI_T_PVAR_HANDLE_NULL;
  bool is_up_ = false;  ///< the tools interface
  bool is_counting_ = false;
};

}  // namespace commtune
