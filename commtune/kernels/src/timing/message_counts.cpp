#include "timing/message_counts.h"

#include "ranks/world.h"

namespace commtune {

MessageCounts::MessageCounts(MPI_Comm communicator) : communicator_(communicator) {
  int ranks = 0;
  COMMTUNE_MPI(MPI_Comm_size(communicator, &ranks));
  ranks_ = static_cast<std::size_t>(ranks);
  int provided = 0;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return;
  is_up_ = true;
  is_counting_ = MPI_T_pvar_session_create(&session_) == MPI_SUCCESS &&
                 open("pml_monitoring_messages_count", messages_) &&
                 open("pml_monitoring_messages_size", bytes_);
}

MessageCounts::~MessageCounts() {
  // The session's handles go with it.
  if (session_ != MPI_T_PVAR_SESSION_NULL) static_cast<void>(MPI_T_pvar_session_free(&session_));
  if (is_up_) static_cast<void>(MPI_T_finalize());
}

bool MessageCounts::open(const char* name, MPI_T_pvar_handle& handle) {
  int index = 0;
  if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_SIZE, &index) != MPI_SUCCESS) return false;
  int count = 0;
  return MPI_T_pvar_handle_alloc(session_, index, &communicator_, &handle, &count) == MPI_SUCCESS &&
         static_cast<std::size_t>(count) == ranks_ &&
         MPI_T_pvar_start(session_, handle) == MPI_SUCCESS;
}

std::optional<std::vector<unsigned long>> MessageCounts::read() const {
  std::vector<unsigned long> counts(2 * ranks_);
  if (!is_counting_ || MPI_T_pvar_read(session_, messages_, counts.data()) != MPI_SUCCESS ||
      MPI_T_pvar_read(session_, bytes_, counts.data() + ranks_) != MPI_SUCCESS) {
    return std::nullopt;
  }
  return counts;
}

}  // namespace commtune
