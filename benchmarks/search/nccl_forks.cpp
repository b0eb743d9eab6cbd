// Records many configurations of NCCL in one launch: for each line of a plan a pair of children is
// forked, a rank and a GPU each, which set the variables, make a communicator, measure an allreduce
// at every size, and leave. The parent never touches CUDA, so a child starts NCCL anew.
//   record PLAN OUT FIRST SECONDS  -> a JSON line a run, appended to OUT; stops after SECONDS
#include <cuda_runtime.h>
#include <nccl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>
namespace {
constexpr size_t kLargest = size_t{32} << 20;
constexpr int kSizes = 23, kMost = 40, kFewest = 5, kWarm = 2;
constexpr double kCap = 0.015, kLimit = 12.0;
struct Shared {
  std::atomic<int> arrived[2];
  std::atomic<int> count;
  double sample[2][kMost];
  double median[kSizes], low[kSizes], p95[kSizes];
  std::atomic<int> done;  // sizes that are finished
  std::atomic<int> wrong;
  double init_s, context_s;
  char error[256];
};
double now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}
void barrier(Shared* s, int rank) {
  const int turn = s->arrived[rank].fetch_add(1) + 1;
  while (s->arrived[1 - rank].load(std::memory_order_acquire) < turn) {
  }
}
void fail(Shared* s, const char* what) {
  snprintf(s->error, sizeof s->error, "%s", what);
  for (char* c = s->error; *c != 0; ++c)
    if (*c == '"' || *c == '\\' || *c < 32) *c = ' ';
  _exit(3);
}
#define CU(x)                                             \
  do {                                                    \
    cudaError_t e = (x);                                  \
    if (e != cudaSuccess) fail(s, cudaGetErrorString(e)); \
  } while (0)
#define NC(x)                                                 \
  do {                                                        \
    ncclResult_t e = (x);                                     \
    if (e != ncclSuccess) fail(s, ncclGetLastError(nullptr)); \
  } while (0)
void child(int rank, Shared* s, int link, const std::vector<std::string>& settings) {
  for (const auto& one : settings) {
    const auto at = one.find('=');
    setenv(one.substr(0, at).c_str(), one.substr(at + 1).c_str(), 1);
  }
  setenv("NCCL_HOSTID", rank == 0 ? "commtune-0" : "commtune-1", 1);
  const double began = now();
  CU(cudaSetDevice(rank));
  CU(cudaFree(nullptr));
  if (rank == 0) s->context_s = now() - began;
  ncclUniqueId id;
  if (rank == 0) {
    NC(ncclGetUniqueId(&id));
    if (write(link, &id, sizeof id) != sizeof id) fail(s, "pipe");
  } else if (read(link, &id, sizeof id) != sizeof id) {
    fail(s, "pipe");
  }
  ncclComm_t comm;
  NC(ncclCommInitRank(&comm, 2, id, rank));
  cudaStream_t stream;
  CU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  float *in = nullptr, *out = nullptr;
  CU(cudaMalloc(&in, kLargest));
  CU(cudaMalloc(&out, kLargest));
  std::vector<float> host(kLargest / 4);
  for (size_t i = 0; i < host.size(); ++i) host[i] = float((i * 7 + rank * 3) % 1021);
  CU(cudaMemcpy(in, host.data(), kLargest, cudaMemcpyHostToDevice));
  if (rank == 0) s->init_s = now() - began;
  for (int k = 0; k < kSizes; ++k) {
    const size_t bytes = size_t{8} << k, count = bytes / 4;
    auto once = [&] {
      barrier(s, rank);
      const double t = now();
      NC(ncclAllReduce(in, out, count, ncclFloat, ncclSum, comm, stream));
      CU(cudaStreamSynchronize(stream));
      return now() - t;
    };
    double warm = 0;
    for (int i = 0; i < kWarm; ++i) warm = once();
    if (rank == 0) s->count = std::clamp(int(kCap / std::max(warm, 1e-7)), kFewest, kMost);
    barrier(s, rank);
    const int n = s->count;
    for (int i = 0; i < n; ++i) s->sample[rank][i] = once();
    barrier(s, rank);
    if (rank == 0) {
      std::vector<double> t(n);
      for (int i = 0; i < n; ++i) t[i] = std::max(s->sample[0][i], s->sample[1][i]);
      std::sort(t.begin(), t.end());
      s->median[k] = n % 2 ? t[n / 2] : (t[n / 2 - 1] + t[n / 2]) / 2;
      s->low[k] = t[0];
      s->p95[k] = t[std::min(n - 1, int(0.95 * (n - 1) + 0.5))];
      s->done = k + 1;
    }
    barrier(s, rank);
  }
  // The last result is checked at places all over the buffer.
  CU(cudaMemcpy(host.data(), out, kLargest, cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (size_t i = 0; i < host.size(); i += 97)
    wrong += host[i] != float((i * 7) % 1021) + float((i * 7 + 3) % 1021);
  s->wrong += wrong;
  _exit(0);
}
}  // namespace
int main(int argc, char** argv) {
  std::ifstream plan(argv[1]);
  FILE* out = fopen(argv[2], "a");
  const int first = atoi(argv[3]);
  const double began = now(), most = atof(argv[4]);
  auto* s = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::string line;
  int number = -1, made = 0, failed = 0;
  (void)argc;
  while (std::getline(plan, line)) {
    if (++number < first) continue;
    if (now() - began > most) break;
    std::istringstream words(line);
    int index = 0;
    words >> index;
    std::vector<std::string> settings;
    for (std::string word; words >> word;) settings.push_back(word);
    memset(static_cast<void*>(s), 0, sizeof *s);
    int link[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, link) != 0) return 1;
    const double start = now();
    pid_t pids[2];
    for (int rank = 0; rank < 2; ++rank) {
      pids[rank] = fork();
      if (pids[rank] == 0) {
        setpgid(0, 0);
        child(rank, s, link[rank], settings);
      }
    }
    close(link[0]);
    close(link[1]);
    int left = 2, bad = 0;
    bool late = false;
    while (left > 0) {
      for (int rank = 0; rank < 2; ++rank) {
        int status = 0;
        if (pids[rank] > 0 && waitpid(pids[rank], &status, WNOHANG) == pids[rank]) {
          pids[rank] = 0;
          --left;
          if (status != 0) bad = 1;
        }
      }
      if (left > 0 && !late && (now() - start > kLimit || (bad && now() - start > 1))) {
        late = now() - start > kLimit;
        for (pid_t pid : pids)
          if (pid > 0) kill(pid, SIGKILL);
        if (!late) bad = 1;
      }
      if (left > 0) usleep(2000);
    }
    const double wall = now() - start;
    const char* outcome = late ? "timeout" : bad ? "crashed" : s->wrong ? "wrong" : "ok";
    ++made;
    failed += strcmp(outcome, "ok") != 0;
    fprintf(out,
            "{\"n\":%d,\"c\":%d,\"t\":%.3f,\"w\":%.4f,\"o\":\"%s\",\"why\":\"%s\",\"ctx\":%.3f,"
            "\"init\":%.3f,\"m\":[",
            number, index, start - began, wall, outcome, s->error, s->context_s, s->init_s);
    const int done = s->done;
    for (int k = 0; k < done; ++k)
      fprintf(out, "%s[%.0f,%.0f,%.0f]", k ? "," : "", 1e9 * s->median[k], 1e9 * s->low[k],
              1e9 * s->p95[k]);
    fprintf(out, "]}\n");
    fflush(out);
  }
  printf("runs %d, failed %d, next %d, %.1f s\n", made, failed, number, now() - began);
  return 0;
}
