// What a call of the tuner plugin costs: COMMTUNE's getCollInfo with 1, 10, 30 and 300 rules for
// the collective, the rule at the end of the file being the one that fits, and without a rule that
// fits; beside an empty function that is called in the same way.
//
//   g++ -std=c++17 -O2 -I commtune/kernels/tuner -o tuner_call benchmarks/tuner_call.cpp -ldl
//   ./tuner_call LIBRARY...       # that 'commtune build --tuner' names, and others
//
// Others read the same file from NCCL_TUNER_CONFIG_FILE, as NVIDIA's example plugin does (in NCCL's
// sources: plugins/tuner/example).
//
// Printed are nanoseconds a call: the median and the range of 41 batches of 100,000 calls, which
// take turns with batches of the empty function. Each call has its table of costs made new, in
// both.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "abi.h"

namespace {

constexpr int kBatch = 100000;
constexpr int kBatches = 41;
constexpr int kAllreduce = 4;

nccl::Result empty(void*, int, size_t, int, float**, int, int, int, int*) { return nccl::kSuccess; }

void silent(nccl::LogLevel, unsigned long, const char*, int, const char*, ...) {}

double batch_ns(nccl::GetCollInfo choose, void* context, size_t bytes) {
  float costs[21];
  float fresh[21];
  std::fill(std::begin(fresh), std::end(fresh), 1.0F);
  int channels = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kBatch; ++i) {
    std::memcpy(costs, fresh, sizeof costs);
    choose(context, kAllreduce, bytes, 1, reinterpret_cast<float**>(costs), 7, 3, 0, &channels);
  }
  const auto time = std::chrono::steady_clock::now() - start;
  return std::chrono::duration<double, std::nano>(time).count() / kBatch;
}

std::string text_of(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  char text[80];
  std::snprintf(text, sizeof text, "%6.1f (%.1f to %.1f)", values[values.size() / 2],
                values.front(), values.back());
  return text;
}

void compare(const char* what, nccl::GetCollInfo choose, void* context, size_t bytes) {
  nccl::GetCollInfo volatile nothing = empty;
  std::vector<double> own, without;
  for (int i = 0; i < kBatches; ++i) {
    own.push_back(batch_ns(choose, context, bytes));
    without.push_back(batch_ns(nothing, nullptr, bytes));
  }
  std::printf("%-26s %-24s empty %s\n", what, text_of(own).c_str(), text_of(without).c_str());
}

/// With a library loaded anew: the file is read once.
void measure(const char* path, int rules) {
  const std::string file = "/tmp/tuner_call_rules.csv";
  std::ofstream opened(file);
  for (int i = 0; i < rules; ++i) {
    opened << "allreduce," << 1000 * i << "," << 1000 * i + 999 << ",ring,ll,2,-1,-1\n";
  }
  opened.close();
  setenv("COMMTUNE_TUNER_FILE", file.c_str(), 1);
  setenv("NCCL_TUNER_CONFIG_FILE", file.c_str(), 1);
  void* library = dlopen(path, RTLD_NOW);
  const auto* tuner = library == nullptr
                          ? nullptr
                          : static_cast<const nccl::TunerV5*>(dlsym(library, "ncclTunerPlugin_v5"));
  void* context = nullptr;
  if (tuner == nullptr ||
      tuner->init(&context, 1, 16, 2, silent, nullptr, nullptr) != nccl::kSuccess) {
    std::fprintf(stderr, "tuner_call: %s\n", tuner == nullptr ? dlerror() : "it doesn't start");
    std::exit(1);
  }
  const auto last = static_cast<size_t>(1000 * rules - 1);
  compare((std::to_string(rules) + " rules, the last").c_str(), tuner->get_coll_info, context,
          last);
  compare((std::to_string(rules) + " rules, none fits").c_str(), tuner->get_coll_info, context,
          last + 1);
  tuner->finalize(context);
  dlclose(library);
  std::remove(file.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "tuner_call LIBRARY...\n");
    return 2;
  }
  std::printf("ns a call: median (least to most)\n");
  for (int i = 1; i < argc; ++i) {
    std::printf("%s\n", argv[i]);
    for (const int rules : {1, 10, 30, 300}) measure(argv[i], rules);
  }
  return 0;
}
