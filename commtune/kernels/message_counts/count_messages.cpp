// Counts a program's collectives by operation, ranks and bytes: loaded by LD_PRELOAD, through PMPI.
// Rank 0 of a communicator counts for all of it. Each process writes what it counted to a file in
// COMMTUNE_MESSAGES when it ends MPI. Bytes are the benchmark's: see docs/benchmark.md.
#include <link.h>
#include <mpi.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

namespace {

enum class Size : std::uint8_t { one, all };  // of one rank's data, or of all ranks' together

using Counts = std::map<std::tuple<std::string, int, long long>, long long>;

std::mutex guard;
Counts counts;

int find_abi(dl_phdr_info* library, size_t /*size*/, void* /*data*/) {
  return std::string(library->dlpi_name).find("/libmpi_abi.so") != std::string::npos ? 1 : 0;
}

/// A program of the standard ABI calls by these names too, with handles of another type.
void refuse_abi() {
  static const bool is_abi = dl_iterate_phdr(find_abi, nullptr) != 0;
  if (is_abi) {
    std::fputs("commtune: programs of the standard MPI ABI (libmpi_abi) can't be counted\n",
               stderr);
    std::_Exit(1);
  }
}

void count(const char* operation, Size size, long long elements, MPI_Datatype type, MPI_Comm comm) {
  refuse_abi();
  int rank = 0;
  int ranks = 0;
  int bytes = 0;
  int is_inter = 0;
  PMPI_Comm_test_inter(comm, &is_inter);
  PMPI_Comm_rank(comm, &rank);
  if (is_inter != 0 || rank != 0) {
    return;
  }
  PMPI_Comm_size(comm, &ranks);
  PMPI_Type_size(type, &bytes);
  const long long own = elements * bytes;
  const std::lock_guard<std::mutex> lock(guard);
  ++counts[{operation, ranks, size == Size::all ? own * ranks : own}];
}

void write_counts() {
  const char* folder = std::getenv("COMMTUNE_MESSAGES");
  if (folder == nullptr || counts.empty()) {
    return;
  }
  // In containers, processes of one node may have the same name of the host and the same number.
  std::string path = std::string(folder) + "/XXXXXX";
  const int opened = mkstemp(path.data());
  std::FILE* file = opened < 0 ? nullptr : fdopen(opened, "w");
  bool is_written = file != nullptr;
  for (const auto& [key, number] : counts) {
    const auto& [operation, ranks, bytes] = key;
    is_written = is_written && std::fprintf(file, "%s %d %lld %lld\n", operation.c_str(), ranks,
                                            bytes, number) > 0;
  }
  if (!is_written || std::fclose(file) != 0) {
    std::fprintf(stderr, "commtune: the counts can't be written: %s: %s\n", path.c_str(),
                 std::strerror(errno));
    std::_Exit(1);
  }
}

}  // namespace

// MPI 4 has each function a second time, with counts of 64 bits; mpi4py calls those.
#define COUNTED(Int, suffix)                                                                    \
  int MPI_Allreduce##suffix(const void* from, void* to, Int n, MPI_Datatype type, MPI_Op op,    \
                            MPI_Comm comm) {                                                    \
    count("allreduce", Size::one, n, type, comm);                                               \
    return PMPI_Allreduce##suffix(from, to, n, type, op, comm);                                 \
  }                                                                                             \
  int MPI_Reduce##suffix(const void* from, void* to, Int n, MPI_Datatype type, MPI_Op op,       \
                         int root, MPI_Comm comm) {                                             \
    count("reduce", Size::one, n, type, comm);                                                  \
    return PMPI_Reduce##suffix(from, to, n, type, op, root, comm);                              \
  }                                                                                             \
  int MPI_Bcast##suffix(void* data, Int n, MPI_Datatype type, int root, MPI_Comm comm) {        \
    count("broadcast", Size::one, n, type, comm);                                               \
    return PMPI_Bcast##suffix(data, n, type, root, comm);                                       \
  }                                                                                             \
  int MPI_Allgather##suffix(const void* from, Int n, MPI_Datatype type, void* to, Int each,     \
                            MPI_Datatype as, MPI_Comm comm) {                                   \
    count("allgather", Size::all, each, as, comm);                                              \
    return PMPI_Allgather##suffix(from, n, type, to, each, as, comm);                           \
  }                                                                                             \
  int MPI_Alltoall##suffix(const void* from, Int n, MPI_Datatype type, void* to, Int each,      \
                           MPI_Datatype as, MPI_Comm comm) {                                    \
    count("alltoall", Size::all, each, as, comm);                                               \
    return PMPI_Alltoall##suffix(from, n, type, to, each, as, comm);                            \
  }                                                                                             \
  int MPI_Reduce_scatter_block##suffix(const void* from, void* to, Int each, MPI_Datatype type, \
                                       MPI_Op op, MPI_Comm comm) {                              \
    count("reduce-scatter", Size::all, each, type, comm);                                       \
    return PMPI_Reduce_scatter_block##suffix(from, to, each, type, op, comm);                   \
  }

extern "C" {

COUNTED(int, )
#if MPI_VERSION >= 4
COUNTED(MPI_Count, _c)
#endif

int MPI_Finalize() {
  write_counts();
  return PMPI_Finalize();
}

}  // extern "C"
