// The plugin as NCCL drives it.

#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "driver.h"

namespace {

using namespace driver;
using harness::contains;

const std::string kRules =
    "# a comment, with a comma\n"
    "# rules: 3\n"
    "\n"
    "allreduce,0,1023,ring,ll,2,-1,-1\n"
    " allreduce , 1024 , 65536 , tree , simple , 0 , 1 , 2 , -1 , -1\n"
    "allreduce,65537,18446744073709551615,ring,simple,-1,-1,-1\n";

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

void expect_borders(nccl::GetCollInfo choose, void* context) {
  const std::vector<std::pair<size_t, Choice>> expected = {
      {0, {kRing, kLl, 2}},           {1023, {kRing, kLl, 2}},
      {1024, {kTree, kSimple, 0}},    {65536, {kTree, kSimple, 0}},
      {65537, {kRing, kSimple, 0}},   {size_t{1} << 32, {kRing, kSimple, 0}},
      {SIZE_MAX, {kRing, kSimple, 0}}};
  for (const auto& [bytes, choice] : expected) {
    Call call;
    call.bytes = bytes;
    EXPECT(call.by(choose, context) == choice);
  }
}

}  // namespace

TEST(all_versions_choose_by_size) {
  const NamedFile file(kRules);
  const Plugin plugin;
  void* context = nullptr;
  const auto& v4 = plugin.table<nccl::TunerV4>("ncclTunerPlugin_v4");
  EXPECT(v4.init(2, 1, keep_line, &context) == nccl::kSuccess);
  expect_borders(v4.get_coll_info, context);
  EXPECT(v4.destroy(context) == nccl::kSuccess);
  const auto& v5 = plugin.v5();
  EXPECT(v5.init(&context, 1, 2, 1, keep_line, nullptr, nullptr) == nccl::kSuccess);
  expect_borders(v5.get_coll_info, context);
  EXPECT(v5.finalize(context) == nccl::kSuccess);
  const auto& v6 = plugin.table<nccl::TunerV6>("ncclTunerPlugin_v6");
  EXPECT(v6.get_chunk_size == nullptr);
  EXPECT(v6.init(&context, 1, 2, 1, keep_line, nullptr, nullptr) == nccl::kSuccess);
  expect_borders(v6.get_coll_info, context);
  EXPECT(v6.finalize(context) == nccl::kSuccess);
  for (const char* name : {v4.name, v5.name, v6.name}) EXPECT(std::string(name) == "commtune");
}

TEST(a_rule_is_said_once_for_a_communicator) {
  const NamedFile file(kRules);
  const Plugin plugin;
  const Communicator first(plugin);
  for (int i = 0; i < 3; ++i) EXPECT(first.at(8).channels == 2);
  EXPECT(count_lines("3 commtune tuner: 3 rules in ") == 1);
  EXPECT(count_lines("3 rules for this communicator of 2 ranks on 1 node") == 1);
  EXPECT(count_lines(
             "allreduce of 8 bytes: ring/ll, 2 channels in place of NCCL's own number (line 4)") ==
         1);
  EXPECT(first.at(2048) == (Choice{kTree, kSimple, 0}));
  EXPECT(count_lines("allreduce of 2048 bytes: tree/simple, channels as NCCL takes them") == 1);
  const Communicator second(plugin);
  EXPECT(second.at(8).channels == 2);
  EXPECT(count_lines("3 rules in ") == 1);
  EXPECT(count_lines("ring/ll") == 2);
  EXPECT(count_warnings() == 0);
}

TEST(the_first_rule_that_fits_is_taken) {
  const NamedFile file(
      "allgather,0,100,ring,ll,1,-1,-1,2\n"
      "allgather,0,100,ring,ll128,1,-1,-1,-1,1\n"
      "allgather,0,100,ring,simple,1,-1,-1\n");
  const Plugin plugin;
  const Communicator communicator(plugin);
  Call call;
  call.collective = kAllgather;
  EXPECT(communicator.choose(call) == (Choice{kRing, kSimple, 1}));
  call.registered = 1;
  EXPECT(communicator.choose(call) == (Choice{kRing, kLl128, 1}));
  call.pipe_operations = 2;
  EXPECT(communicator.choose(call) == (Choice{kRing, kLl, 1}));
}

TEST(channels_are_ignored_where_nccl_would_not_cut_them_to_those_that_there_are) {
  const NamedFile file(
      "allreduce,0,7,collnet_direct,simple,32,-1,-1\n"
      "allreduce,8,15,nvls,simple,32,-1,-1\n"
      "allreduce,16,16,nvls_tree,simple,32,-1,-1\n");
  const Plugin plugin;
  const Communicator communicator(plugin);
  EXPECT(communicator.at(7) == (Choice{2, kSimple, 0}));
  EXPECT(communicator.at(8) == (Choice{4, kSimple, 0}));
  EXPECT(communicator.at(16) == (Choice{5, kSimple, 32}));
  EXPECT(count_lines("channels as NCCL takes them (32 channels ignored)") == 2);
}

TEST(rules_may_overlap) {
  const NamedFile file(
      "allreduce,100,200,ring,ll,1,-1,-1\n"
      "allreduce,0,150,ring,ll,2,-1,-1\n"
      "allreduce,150,18446744073709551615,ring,ll,3,-1,-1\n"
      "allreduce,160,160,ring,ll,4,-1,-1\n");
  const Plugin plugin;
  const Communicator communicator(plugin);
  const std::vector<std::pair<size_t, int>> expected = {
      {0, 2}, {99, 2}, {100, 1}, {150, 1}, {151, 1}, {160, 1}, {200, 1}, {201, 3}, {SIZE_MAX, 3}};
  for (const auto& [bytes, channels] : expected)
    EXPECT(communicator.at(bytes).channels == channels);
}

TEST(what_nccl_does_not_offer_is_warned_of_and_passed_over) {
  unsetenv("NCCL_DEBUG");
  const NamedFile file(
      "allreduce,0,100,pat,simple,1,-1,-1\n"
      "allreduce,0,100,ring,ll128,2,-1,-1\n"
      "allreduce,0,9,ring,simple,3,-1,-1\n");
  const Plugin plugin;
  const Communicator communicator(plugin);
  Call call;
  call.ignored = {kRing, kLl128};
  EXPECT(communicator.choose(call) == (Choice{kPat, kSimple, 1}));
  call.algorithms = kPat;  // NCCL 2.22 has none
  const std::string errors = errors_of([&] {
    for (int i = 0; i < 3; ++i) EXPECT(communicator.choose(call) == (Choice{kRing, kSimple, 3}));
  });
  EXPECT(contains(errors, "NCCL does not offer pat/simple here (line 1)"));
  EXPECT(count_lines("2 commtune tuner: allreduce of 8 bytes: NCCL does not offer") == 2);
  call.bytes = 10;
  EXPECT(communicator.choose(call) == kOfNccl);
  EXPECT(count_lines("3 commtune tuner: allreduce of 10 bytes: no rule fits, NCCL chooses") == 1);
}

TEST(without_a_rule_nccl_chooses_and_it_is_said) {
  const NamedFile file("allreduce,16,4294967295,ring,ll,2,-1,-1\n");
  const Plugin plugin;
  const Communicator communicator(plugin);
  EXPECT(communicator.at(8) == kOfNccl);
  EXPECT(communicator.at(9) == kOfNccl);
  EXPECT(communicator.at(size_t{8} << 30) == kOfNccl);
  EXPECT(count_lines("allreduce of 8 bytes: no rule fits, NCCL chooses (rules go from 16 to "
                     "4294967295 bytes)") == 1);
  EXPECT(count_lines("allreduce of 8589934592 bytes: no rule fits") == 1);
  EXPECT(count_lines("no rule fits") == 2);
  Call call;
  call.collective = kAllgather;
  for (const size_t bytes : {8, 64, 512}) {
    call.bytes = bytes;
    EXPECT(communicator.choose(call) == kOfNccl);
  }
  EXPECT(count_lines("no rule is for allgather here: NCCL chooses") == 1);
  for (const int unknown : {kAlltoall, -1, 1000}) {
    call.collective = unknown;
    EXPECT(communicator.choose(call) == kOfNccl);
  }
}

TEST(windows_line_ends_are_read) {
  std::string text = kRules;
  for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) {
    text.insert(at, "\r");
  }
  const NamedFile file(text);
  const Plugin plugin;
  const Communicator communicator(plugin);
  EXPECT(communicator.at(8) == (Choice{kRing, kLl, 2}));
  EXPECT(count_lines("its lines end as on Windows") == 1);
}

TEST(a_file_that_cannot_be_used_ends_the_start_with_its_reason) {
  const std::string good = "allreduce,0,1,ring,ll,2,1,2\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "it is empty"},
      {"# nothing\n", "it has no rules"},
      {"allreduce,0,1,ring,ll,2,1,16", "line 1: it has no end: the file is cut short"},
      {"# rules: 2\n" + good, "it has 1 of 2 rules: it is cut short"},
      {"# rules: two\n" + good, "line 1: 'two' is no number of rules"},
      {good + "allreduce,0,1,ring,ll,2\n", "line 2: 6 fields, and a rule has 8 to 10"},
      {"allreduce,0,1,ring,ll,2,1,2,-1,-1,-1\n", "line 1: 11 fields"},
      {"alltoall,0,1,ring,ll,2,1,2\n", "line 1: 'alltoall' is no collective: one of broadcast"},
      {"AllReduce,0,1,ring,ll,2,1,2\n", "'AllReduce' is no collective"},
      {"allreduce,0,1,Ring,ll,2,1,2\n", "'Ring' is no algorithm: one of tree, ring"},
      {"allreduce,0,1,ring,LL,2,1,2\n", "'LL' is no protocol: one of ll, ll128, simple"},
      {"allreduce,2,1,ring,ll,2,1,2\n", "the smallest size is above the largest"},
      {"allreduce,0,18446744073709551616,ring,ll,2,1,2\n", "is no size"},
      {"allreduce,0,64K,ring,ll,2,1,2\n", "'64K' is no size"},
      {"allreduce,-1,1,ring,ll,2,1,2\n", "'-1' is no size"},
      {"allreduce,0,1,ring,ll,65,1,2\n", "'65' is no number of channels: a number from -1 to 64"},
      {"allreduce,0,1,ring,ll,,1,2\n", "'' is no number of channels"},
      {"allreduce,0,1,ring,ll,2,0,2\n", "number of nodes is 0: from 1, or -1 for any"},
      {"allreduce,0,1,ring,ll,2,1,2,-1,2\n", "'2' is no registered buffer"},
      {std::string("all\0reduce", 10) + ",0,1,ring,ll,2,1,2\n", "'all?reduce' is no collective"},
      {repeated(good, 1001), "it has more than 1000 rules"},
      {std::string(2 << 20, '#') + "\n", "it is larger than 1 MiB"},
  };
  setenv("NCCL_DEBUG", "WARN", 1);
  for (const auto& [text, reason] : cases) {
    const NamedFile file(text);
    const Plugin plugin;
    const Communicator communicator(plugin);
    EXPECT(communicator.result == nccl::kInvalidUsage);
    EXPECT(communicator.context() == nullptr);
    EXPECT(log_lines.size() == 1);
    EXPECT(count_lines("2 commtune tuner: COMMTUNE_TUNER_FILE=/tmp/commtune-tuner-test-") == 1);
    EXPECT(count_lines(reason) == 1);
    EXPECT(communicator.at(8) == kOfNccl);
  }
  unsetenv("NCCL_DEBUG");
}

TEST(a_path_that_cannot_be_read_ends_the_start) {
  setenv("NCCL_DEBUG", "info", 1);
  for (const auto& [path, reason] : std::vector<std::pair<std::string, std::string>>{
           {"/nonexistent/rules", "No such file"}, {"/tmp", "no file"}, {"/dev/zero", "no file"}}) {
    setenv("COMMTUNE_TUNER_FILE", path.c_str(), 1);
    const Plugin plugin;
    std::string errors = "unset";
    errors = errors_of([&] { EXPECT(Communicator(plugin).result == nccl::kInvalidUsage); });
    EXPECT(count_lines(path + " can't be used: ") == 1);
    EXPECT(count_lines(reason) == 1);
    EXPECT(errors.empty());  // NCCL's log shows it
  }
  unsetenv("NCCL_DEBUG");
}

TEST(a_file_without_permission_to_read_ends_the_start) {
  setenv("NCCL_DEBUG", "WARN", 1);
  const NamedFile file(kRules);
  EXPECT(chmod(std::getenv("COMMTUNE_TUNER_FILE"), 0) == 0);
  const Plugin plugin;
  // To root, all files are open.
  const bool is_root = geteuid() == 0;
  if (is_root) EXPECT(seteuid(65534) == 0);
  EXPECT(Communicator(plugin).result == nccl::kInvalidUsage);
  if (is_root) EXPECT(seteuid(0) == 0);
  EXPECT(count_lines(" can't be used: Permission denied. Mend the file on all nodes") == 1);
  unsetenv("NCCL_DEBUG");
}

TEST(what_is_wrong_is_seen_without_nccls_log) {
  setenv("COMMTUNE_TUNER_FILE", "/nonexistent/rules", 1);
  const Plugin plugin;
  for (const char* level : {"", "VERSION"}) {
    setenv("NCCL_DEBUG", level, 1);
    const std::string errors = errors_of([&] { const Communicator communicator(plugin); });
    EXPECT(contains(errors,
                    "commtune tuner: COMMTUNE_TUNER_FILE=/nonexistent/rules can't be used: "
                    "No such file or directory. Mend the file on all nodes"));
  }
  unsetenv("NCCL_DEBUG");
}

TEST(without_a_file_nccl_chooses_and_it_is_said_once) {
  unsetenv("COMMTUNE_TUNER_FILE");
  const Plugin plugin;
  const std::string errors = errors_of([&] {
    for (int i = 0; i < 2; ++i) {
      const Communicator communicator(plugin);
      EXPECT(communicator.result == nccl::kSuccess);
      EXPECT(communicator.at(8) == kOfNccl);
    }
  });
  EXPECT(errors == "commtune tuner: COMMTUNE_TUNER_FILE is not set: NCCL chooses everything\n");
}

TEST(a_file_for_other_ranks_or_nodes_is_warned_of_once) {
  const NamedFile file("allreduce,0,100,ring,ll,2,2,16\n");
  for (const auto& [ranks, nodes] : std::vector<std::pair<size_t, size_t>>{{8, 2}, {16, 1}}) {
    const Plugin plugin;
    const std::string errors = errors_of([&, ranks = ranks, nodes = nodes] {
      for (int i = 0; i < 2; ++i) {
        const Communicator communicator(plugin, ranks, nodes);
        EXPECT(communicator.at(8) == kOfNccl);
      }
    });
    EXPECT(contains(errors, "no rule is for a communicator of " + std::to_string(ranks)));
    EXPECT(contains(errors, "NCCL chooses. Line 1 is for 16 ranks on 2 nodes\n"));
    EXPECT(count_lines("2 commtune tuner: no rule is for a comm") == 1);
    EXPECT(count_lines("3 commtune tuner: no rule is for a comm") == 1);
  }
}

TEST(parts_of_a_communicator_with_rules_are_not_warned_of) {
  const NamedFile file("allreduce,0,100,ring,ll,2,2,16\n");
  const Plugin plugin;
  const std::string errors = errors_of([&] {
    const Communicator world(plugin, 16, 2);
    EXPECT(world.at(8) == (Choice{kRing, kLl, 2}));
    const Communicator part(plugin, 8, 1);
    EXPECT(part.at(8) == kOfNccl);
    const Communicator alone(plugin, 1, 1);
  });
  EXPECT(errors.empty());
  EXPECT(count_lines("no rule is for a communicator of 8 ranks on 1 node") == 1);
  EXPECT(count_lines("no rule is for a communicator of 1 rank") == 0);
}

TEST(a_file_that_is_replaced_while_the_program_runs_changes_nothing) {
  const std::string other = "allreduce,0,100,tree,simple,1,-1,-1\n";
  for (const auto& [text, reason] : std::vector<std::pair<std::string, std::string>>{
           {other, "its text is another one"}, {"", "it is empty"}}) {
    const NamedFile file(kRules);
    Plugin plugin;
    const std::string errors = errors_of([&] {
      const Communicator first(plugin);
      file.write(text);
      for (int i = 0; i < 2; ++i) {
        EXPECT(Communicator(plugin).at(8) == (Choice{kRing, kLl, 2}));
      }
      EXPECT(first.at(8) == (Choice{kRing, kLl, 2}));
    });
    plugin.load_again();
    EXPECT(Communicator(plugin).at(8) == (Choice{kRing, kLl, 2}));
    EXPECT(contains(errors, " was replaced while the program runs (" + reason + ")"));
    EXPECT(count_warnings() == 1);
  }
}

TEST(eight_threads_share_a_library) {
  const NamedFile file(kRules);
  const Plugin plugin;
  const Communicator shared(plugin);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&plugin, &shared] {
      for (int round = 0; round < 20; ++round) {
        const Communicator own(plugin);
        for (size_t bytes = 1; bytes < size_t{1} << 40; bytes *= 2) {
          const Choice expected = bytes < 1024     ? Choice{kRing, kLl, 2}
                                  : bytes <= 65536 ? Choice{kTree, kSimple, 0}
                                                   : Choice{kRing, kSimple, 0};
          EXPECT(own.at(bytes) == expected);
          EXPECT(shared.at(bytes) == expected);
        }
        Call call;
        call.collective = kAllgather;
        EXPECT(shared.choose(call) == kOfNccl);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  constexpr int kCommunicators = 1 + 8 * 20;
  EXPECT(count_lines("(line 4)") == kCommunicators);
  EXPECT(count_lines("(line 6)") == kCommunicators);
  EXPECT(count_lines("no rule is for allgather") == 1);
  EXPECT(count_lines("3 rules in ") == 1);
}
