// What launching a kernel takes, from each core in turn: does it depend on the core, or on the
// time?
//
//   nvcc -O2 -o launch_speed benchmarks/launch_speed.cu
//   ./launch_speed GPU STEP CORES      # cores 0, STEP, 2 STEP ... below CORES, twice
//
// Printed are, per core, the medians of 40 batches of 20 empty kernels, microseconds a kernel:
// until all are complete, and until the last one is launched.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kBatch = 20;
constexpr int kBatches = 40;

__global__ void nothing() {}

void check(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "launch_speed: %s\n", cudaGetErrorString(code));
  std::exit(1);
}

double now_us() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(time).count();
}

double median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void move_to(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  if (sched_setaffinity(0, sizeof one, &one) == 0) return;
  std::fprintf(stderr, "launch_speed: core %d can't be used\n", core);
  std::exit(1);
}

void measure(int core, cudaStream_t stream) {
  move_to(core);
  std::vector<double> complete;
  std::vector<double> launched;
  for (int i = 0; i < kBatches; ++i) {
    const double begin = now_us();
    for (int k = 0; k < kBatch; ++k) nothing<<<1, 32, 0, stream>>>();
    const double all_launched = now_us();
    check(cudaStreamSynchronize(stream));
    complete.push_back((now_us() - begin) / kBatch);
    launched.push_back((all_launched - begin) / kBatch);
  }
  std::printf(" %d:%.2f/%.2f", core, median(complete), median(launched));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: launch_speed GPU STEP CORES\n");
    return 2;
  }
  const int gpu = std::atoi(argv[1]);
  const int step = std::max(1, std::atoi(argv[2]));
  const int cores = std::atoi(argv[3]);
  check(cudaSetDevice(gpu));
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int i = 0; i < 3000; ++i) nothing<<<1, 32, 0, stream>>>();
  check(cudaStreamSynchronize(stream));
  for (int pass = 0; pass < 2; ++pass) {
    std::printf("gpu %d pass %d:", gpu, pass);
    for (int core = 0; core < cores; core += step) measure(core, stream);
    std::printf("\n");
  }
  return 0;
}
