#include "harness.h"
#include "ranks/sharing.h"

using namespace commtune;

namespace {

RankPlace on(int kernel, const std::string& host, long pid) {
  RankPlace place;
  place.kernel = kernel;
  place.host = host;
  place.pid = pid;
  return place;
}

const std::vector<RankPlace> kTwoNodes{on(0, "a", 11), on(0, "a", 12), on(1, "b", 11),
                                       on(1, "b", 12)};

}  // namespace

TEST(a_gpu_for_every_rank_is_as_it_should_be) {
  EXPECT(shared_gpu(kTwoNodes, {"GPU-1", "GPU-2", "GPU-3", "GPU-4"}).empty());
  EXPECT(shared_gpu({}, {}).empty());
}

TEST(the_same_address_on_another_machine_is_another_gpu) {
  EXPECT(shared_gpu(kTwoNodes, {"0000:1b:00.0", "0000:1c:00.0", "0000:1b:00.0", "0000:1c:00.0"})
             .empty());
}

TEST(instances_of_one_gpu_are_not_shared) {
  EXPECT(shared_gpu({on(0, "a", 11), on(0, "a", 12)}, {"MIG-1", "MIG-2"}).empty());
}

TEST(what_nobody_tells_is_not_held_against_ranks) {
  EXPECT(shared_gpu({on(0, "a", 11), on(0, "a", 12)}, {"", ""}).empty());
}

TEST(ranks_that_use_one_gpu_are_named_with_it) {
  const std::string said = shared_gpu(kTwoNodes, {"GPU-1", "GPU-2", "GPU-3", "GPU-3"});
  EXPECT(harness::contains(
      said, "ranks 2 (process 11 on b), 3 (process 12 on b) use the same GPU, GPU-3: each rank"));
  EXPECT(harness::contains(said, "--share-gpus yes"));
}

TEST(containers_of_one_machine_are_seen_through) {
  const std::vector<RankPlace> containers{on(0, "pod-1", 7), on(0, "pod-2", 7)};
  EXPECT(harness::contains(shared_gpu(containers, {"GPU-1", "GPU-1"}),
                           "ranks 0 (process 7 on pod-1), 1 (process 7 on pod-2) use the same"));
}

TEST(of_many_ranks_some_are_named) {
  const std::vector<RankPlace> ranks(6, on(0, "a", 7));
  const std::vector<std::string> gpus(6, "GPU-1");
  EXPECT(harness::contains(shared_gpu(ranks, gpus), "3 (process 7 on a) and 2 more use the same"));
}
