#include "harness.h"
#include "ranks/placement.h"
#include "records/libraries.h"

using namespace commtune;

namespace {

RankPlace on(int kernel, std::set<int> cpus) {
  RankPlace place;
  place.kernel = kernel;
  place.cpus = std::move(cpus);
  return place;
}

}  // namespace

TEST(cpu_lists_have_the_kernels_form) {
  EXPECT(cpu_list({}).empty());
  EXPECT(cpu_list({5}) == "5");
  EXPECT(cpu_list({0, 1, 2, 3}) == "0-3");
  EXPECT(cpu_list({0, 2, 3, 8}) == "0,2-3,8");
}

TEST(this_process_may_run_somewhere) { EXPECT(!allowed_cpus().empty()); }

TEST(nodes_are_numbered_as_they_appear_and_ranks_on_each) {
  std::vector<RankPlace> ranks(5);
  number_nodes({"b", "a", "b", "c", "a"}, ranks);
  const std::vector<int> nodes{0, 1, 0, 2, 1};
  const std::vector<int> local_ranks{0, 0, 1, 0, 1};
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    EXPECT(ranks[i].node == nodes[i]);
    EXPECT(ranks[i].local_rank == local_ranks[i]);
  }
}

TEST(ranks_outnumber_cpus_by_the_union_of_their_masks) {
  EXPECT(!outnumber_cpus({on(0, {0, 1}), on(0, {0, 1})}));
  EXPECT(!outnumber_cpus({on(0, {0}), on(0, {1})}));
  EXPECT(outnumber_cpus({on(0, {0}), on(0, {0})}));
  EXPECT(outnumber_cpus({on(0, {0, 1}), on(0, {0, 1}), on(0, {0, 1})}));
}

TEST(one_crowded_machine_is_enough) {
  EXPECT(!outnumber_cpus({on(0, {0}), on(1, {0})}));
  EXPECT(outnumber_cpus({on(0, {0, 1}), on(1, {0}), on(1, {0})}));
}

TEST(nodes_under_one_kernel_share_its_cpus) {
  RankPlace first = on(0, {0, 1});
  RankPlace second = on(0, {0, 1});
  second.node = 1;
  EXPECT(!outnumber_cpus({first, second}));
  EXPECT(outnumber_cpus({first, first, second, second}));
}

TEST(communication_libraries_are_known_by_file_name) {
  EXPECT(is_communication_library("/opt/mpich/lib/libmpi.so.12"));
  EXPECT(is_communication_library("/usr/lib/libfabric.so.1"));
  EXPECT(is_communication_library("/x/libfabric/libtcp-fi.so"));
  EXPECT(is_communication_library("libucp.so.0"));
  EXPECT(!is_communication_library("/lib/x86_64-linux-gnu/libc.so.6"));
  EXPECT(!is_communication_library("/opt/libmpi/libz.so"));
  EXPECT(!is_communication_library(""));
}

TEST(libraries_that_tell_their_version_are_known_by_file_name) {
  EXPECT(library_with_version("/opt/mpich/lib/mpich/libucp.so.0") == "ucx");
  EXPECT(library_with_version("/x/site-packages/libucp-1a2b3c4d.so.0.0.0") == "ucx");
  EXPECT(library_with_version("libfabric.so.1") == "libfabric");
  EXPECT(library_with_version("/usr/lib/libucc.so.1") == "ucc");
  EXPECT(library_with_version("/usr/lib/ucc/libucc_tl_ucp.so").empty());
  EXPECT(library_with_version("/usr/lib/libuct.so.0").empty());
  EXPECT(library_with_version("/opt/libucp.so.0/libz.so").empty());
  EXPECT(library_with_version("libucp").empty());
}

TEST(libfabric_packs_its_version_into_a_number) {
  EXPECT(unpacked_version(0x00020005U) == "2.5");
  EXPECT(unpacked_version(0x00010011U) == "1.17");
}

TEST(what_is_not_loaded_has_no_version) {
  EXPECT(library_versions({}).empty());
  EXPECT(library_versions({"/nowhere/libucp.so.0", "/usr/lib/libc.so.6", ""}).empty());
}
