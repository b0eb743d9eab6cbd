// Calls operations, each once at the sizes after its name: for a debugger, which stops at at_size.
#include <cstdlib>
#include <string>
#include <vector>

#include <mpi.h>

extern "C" __attribute__((noinline)) void at_size(long bytes) {
  __asm__ volatile("" : : "r"(bytes) : "memory");
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::string operation;
  for (int at = 1; at < argc; ++at) {
    const long bytes = std::atol(argv[at]);
    if (bytes == 0) {
      operation = argv[at];
      continue;
    }
    const int block = static_cast<int>(bytes / ranks);
    std::vector<char> sent(bytes);
    std::vector<char> received(bytes);
    at_size(bytes);
    if (operation == "broadcast")
      MPI_Bcast(sent.data(), static_cast<int>(bytes), MPI_BYTE, 0, MPI_COMM_WORLD);
    else if (operation == "allgather")
      MPI_Allgather(sent.data(), block, MPI_BYTE, received.data(), block, MPI_BYTE,
                    MPI_COMM_WORLD);
    else if (operation == "alltoall")
      MPI_Alltoall(sent.data(), block, MPI_BYTE, received.data(), block, MPI_BYTE,
                   MPI_COMM_WORLD);
  }
  return MPI_Finalize();
}
