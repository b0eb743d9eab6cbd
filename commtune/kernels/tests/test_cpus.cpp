#include "error.h"
#include "harness.h"
#include "ranks/cpus.h"
#include "ranks/placement.h"

using namespace commtune;

TEST(cpu_lists_of_the_kernel_are_read) {
  EXPECT((parse_cpu_list("0") == std::set<int>{0}));
  EXPECT((parse_cpu_list("0-3") == std::set<int>{0, 1, 2, 3}));
  EXPECT((parse_cpu_list("0-1,8,10-11\n") == std::set<int>{0, 1, 8, 10, 11}));
  EXPECT((parse_cpu_list("112-113,336") == std::set<int>{112, 113, 336}));
}

TEST(an_empty_list_is_no_cpu) {
  EXPECT(parse_cpu_list("").empty());
  EXPECT(parse_cpu_list("\n").empty());
}

TEST(what_is_no_list_is_refused) {
  for (const char* text : {"x", "1,", ",1", "3-1", "1-", "-1", "1;2", "1-2-3", "99999999", "1 2"}) {
    EXPECT(harness::message_of<Error>([&] { parse_cpu_list(text); }) ==
           "'" + std::string(text) + "' is no list of CPUs");
  }
}

TEST(lists_are_read_as_they_are_written) {
  const std::set<int> cpus{0, 2, 3, 4, 9};
  EXPECT(parse_cpu_list(cpu_list(cpus)) == cpus);
}

TEST(masks_are_narrowed_to_what_is_near) {
  EXPECT((narrowed({0, 1, 2, 3}, {2, 3, 4}) == std::set<int>{2, 3}));
}

TEST(masks_stay_where_nothing_near_is_allowed_or_all_of_it_is) {
  EXPECT(narrowed({0, 1}, {2, 3}).empty());
  EXPECT(narrowed({0, 1}, {}).empty());
  EXPECT(narrowed({0, 1}, {0, 1, 2}).empty());
}

TEST(this_process_runs_where_it_is_told_to) {
  const std::set<int> before = allowed_cpus();
  const std::set<int> one{*before.rbegin()};
  run_on_cpus(one);
  EXPECT(allowed_cpus() == one);
  run_on_cpus(before);
  EXPECT(allowed_cpus() == before);
}

TEST(a_mask_without_a_cpu_of_this_machine_is_an_error) {
  EXPECT(harness::contains(harness::message_of<Error>([] { run_on_cpus({16000}); }),
                           "sched_setaffinity"));
}
