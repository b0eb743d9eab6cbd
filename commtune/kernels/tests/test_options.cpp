
#include "cli/options.h"
#include "error.h"
#include "harness.h"

using namespace commtune;

namespace {

Options parsed(std::vector<std::string> arguments) { return parse_command_line(arguments).options; }

std::string complaint(const std::vector<std::string>& arguments) {
  return harness::message_of<UsageError>([&] { parse_command_line(arguments); });
}

std::vector<std::string> with(const std::string& option, const std::string& value) {
  return {"--op", "allreduce", "--sizes", "8", option, value};
}

std::vector<std::string> aggressor(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"--mode=aggress", "--pattern=alltoall", "--message=131072"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

TEST(all_options_are_read_in_both_forms) {
  const Options options = parsed({"--op=alltoall",
                                  "--sizes",
                                  "8,1024,4",
                                  "--dtype",
                                  "int32",
                                  "--reduction=max",
                                  "--records",
                                  "a file",
                                  "--run-id=r=1",
                                  "--env-names",
                                  "A,B",
                                  "--expect-ranks=5",
                                  "--mode=trace",
                                  "--controls",
                                  "C,D",
                                  "--warmup",
                                  "0",
                                  "--min-samples=3",
                                  "--max-samples",
                                  "7",
                                  "--relative-ci",
                                  "0.5",
                                  "--time-cap=1e-2",
                                  "--seed",
                                  "9",
                                  "--check=none"});
  EXPECT(options.operation == Operation::alltoall);
  EXPECT((options.sizes == std::vector<std::size_t>{8, 1024, 4}));
  EXPECT(options.type == DataType::int32);
  EXPECT(options.reduction == Reduction::max);
  EXPECT(options.records == "a file");
  EXPECT(options.run_id == "r=1");
  EXPECT((options.env_names == std::vector<std::string>{"A", "B"}));
  EXPECT(options.expect_ranks == 5);
  EXPECT(options.mode == Mode::trace);
  EXPECT((options.controls == std::vector<std::string>{"C", "D"}));
  EXPECT(options.limits.warmup == 0);
  EXPECT(options.limits.min_samples == 3);
  EXPECT(options.limits.max_samples == 7);
  EXPECT(options.limits.relative_ci == 0.5);
  EXPECT(options.limits.time_cap_s == 0.01);
  EXPECT(options.seed == 9);
  EXPECT(!options.check);
  const auto fault = parsed(with("--fault", "wrong@1024")).fault;
  EXPECT(fault && fault->kind == Fault::Kind::wrong);
  EXPECT(fault && fault->bytes == 1024);
}

TEST(traces_do_operations_one_by_one) {
  const std::vector<std::string> asked{"--op=ring",   "--sizes=8",    "--timing=batched",
                                       "--graph=yes", "--rotate=yes", "--timer=device"};
  EXPECT(parsed(asked).graph && parsed(asked).rotate && parsed(asked).operations == 20);
  auto trace = asked;
  trace.emplace_back("--mode=trace");
  EXPECT(parsed(trace).timing == Timing::blocking && parsed(trace).timer == Timer::wall);
  EXPECT(!parsed(trace).graph && !parsed(trace).rotate && parsed(trace).operations == 0);
  trace.emplace_back("--fault=wrong@8");
  EXPECT(complaint(trace) == "--fault is not for --mode trace, which checks nothing");
}

TEST(defaults_are_those_of_the_reference) {
  const Options options = parsed({"--op", "broadcast", "--sizes", "4"});
  EXPECT(options.type == DataType::float32);
  EXPECT(options.reduction == Reduction::sum);
  EXPECT(options.records.empty());
  EXPECT(options.env_names.empty());
  EXPECT(options.mode == Mode::measure);
  EXPECT(options.controls.empty());
  EXPECT(options.limits.warmup == 5);
  EXPECT(options.limits.min_samples == 10);
  EXPECT(options.limits.max_samples == 200);
  EXPECT(options.limits.relative_ci == 0.01);
  EXPECT(options.limits.time_cap_s == 0.05);
  EXPECT(options.check);
  EXPECT(!options.fault);
}

TEST(operations_of_a_sample_are_twenty_in_batched_timing_and_else_chosen) {
  EXPECT(parsed(with("--timing", "batched")).operations == 20);
  EXPECT(parsed(with("--timing", "blocking")).operations == 0);
  EXPECT(parsed(with("--operations", "1")).operations == 1);
}

TEST(graphs_are_for_batches) {
  const std::vector<std::string> batched{"--op=ring", "--sizes=8", "--timing=batched"};
  const auto with_graph = [&batched](const char* value) {
    auto arguments = batched;
    arguments.push_back(std::string("--graph=") + value);
    return arguments;
  };
  EXPECT(!parsed(batched).graph);
  EXPECT(parsed(with_graph("yes")).graph);
  EXPECT(parsed(with_graph("yes")).operations == 20);
  EXPECT(!parsed(with_graph("no")).graph);
  EXPECT(!parsed(with("--graph", "no")).graph);
  EXPECT(complaint(with("--graph", "yes")) ==
         "--graph yes launches batches as a whole: add --timing batched");
  EXPECT(complaint(with_graph("20")) == "--graph: '20' is neither yes nor no");
  EXPECT(harness::contains(complaint({"--op=matrix", "--sizes=8", "--matrix=m", "--backend=xccl",
                                      "--inside=ipc-put", "--timing=batched", "--graph=yes"}),
                           "not with --inside, --between or --assemble"));
}

TEST(options_of_an_aggressor_are_read) {
  const Options options = parsed(
      aggressor({"--burst", "0.5", "--pause=2", "--stop-file=a b", "--longest=7", "--run-id=r"}));
  EXPECT(options.mode == Mode::aggress);
  EXPECT(options.aggressor.pattern == Pattern::alltoall);
  EXPECT(options.aggressor.message == 131072);
  EXPECT(options.aggressor.bursts.burst_s == 0.5);
  EXPECT(options.aggressor.bursts.pause_s == 2.0);
  EXPECT(options.aggressor.stop_file == "a b");
  EXPECT(options.aggressor.longest_s == 7.0);
}

TEST(an_aggressor_sends_for_an_hour_without_pause_unless_told_otherwise) {
  const Options options = parsed(aggressor({}));
  EXPECT(options.aggressor.bursts.burst_s == 0.0);
  EXPECT(options.aggressor.bursts.pause_s == 0.0);
  EXPECT(options.aggressor.stop_file.empty());
  EXPECT(options.aggressor.longest_s == 3600.0);
}

TEST(an_aggressor_is_told_what_is_missing_or_wrong) {
  EXPECT(complaint({"--mode=aggress", "--message=8"}) ==
         "--pattern is missing: incast or alltoall");
  EXPECT(complaint({"--mode=aggress", "--pattern=incast"}) == "--message is missing: give bytes");
  EXPECT(complaint(aggressor({"--pattern=outcast"})) ==
         "--pattern: 'outcast' is neither incast nor alltoall");
  EXPECT(harness::contains(complaint(aggressor({"--message=0"})), "is not a number from 1 to"));
  EXPECT(harness::contains(complaint(aggressor({"--longest=0"})), "is not a number"));
  EXPECT(complaint(aggressor({"--burst=1"})) == "--burst and --pause need each other");
  EXPECT(complaint(aggressor({"--pause=1"})) == "--burst and --pause need each other");
  EXPECT(complaint(aggressor({"--op=allreduce"})) == "--op is not for --mode aggress");
  EXPECT(complaint(aggressor({"--max-samples=5"})) == "--max-samples is not for --mode aggress");
  EXPECT(complaint(with("--longest", "5")) == "--longest needs --mode aggress or --aggressors");
}

TEST(complaints_say_what_is_legal) {
  EXPECT(harness::contains(complaint({"--op", "allredduce", "--sizes", "8"}),
                           "unknown operation 'allredduce'; one of: ping-pong, bidirectional, "
                           "stream, allreduce, reduce, broadcast"));
  EXPECT(harness::contains(complaint(with("--dtype", "half")), "float32, float64, int32, uint8"));
  EXPECT(harness::contains(complaint(with("--reduction", "prod")), "one of: sum, max"));
  EXPECT(harness::contains(complaint(with("--size", "8")), "options are: --op --then --backend"));
  EXPECT(harness::contains(complaint(with("--check", "some")), "neither full nor none"));
  EXPECT(harness::contains(complaint(with("--mode", "watch")), "neither measure nor trace"));
  EXPECT(harness::contains(complaint(with("--fault", "burn@8")), "hang, crash, wrong, babble"));
}

TEST(numbers_are_read_whole_and_within_their_range) {
  for (const char* sizes :
       {"", "8,", ",8", "8k", "0", "-8", "1073741825", "8.0", "0x8", "99999999999999999999999"}) {
    EXPECT(harness::contains(complaint({"--op", "allreduce", "--sizes", sizes}),
                             "is not a number from 1 to 1073741824"));
  }
  EXPECT(harness::contains(complaint(with("--min-samples", "0")), "is not a number"));
  EXPECT(harness::contains(complaint(with("--relative-ci", "nan")), "is not a number"));
  EXPECT(harness::contains(complaint(with("--time-cap", "0")), "is not a number"));
  EXPECT(harness::contains(complaint(with("--fault", "wrong@8k")), "is not a number of bytes"));
  EXPECT(harness::contains(complaint(with("--fault", "wrong")), "KIND@BYTES"));
}

TEST(contradictions_and_gaps_are_found) {
  EXPECT(harness::contains(complaint({"--sizes", "8"}), "--op is missing"));
  EXPECT(harness::contains(complaint({"--op", "allreduce"}), "--sizes is missing"));
  EXPECT(harness::contains(complaint({"--op"}), "--op needs a value"));
  EXPECT(harness::contains(complaint({"--op", "allreduce", "--sizes", "8,8"}), "is there twice"));
  EXPECT(harness::contains(complaint({"--op", "allreduce", "--sizes", "2"}), "less than one"));
  EXPECT(harness::contains(complaint(with("--controls", "A")), "needs --mode trace"));
  EXPECT(harness::contains(complaint(with("--max-samples", "5")), "more than --max-samples"));
}

TEST(options_of_patterns_belong_to_them) {
  EXPECT(complaint(with("--window", "8")) == "--window is not for --op allreduce");
  EXPECT(complaint(with("--active", "2")) == "--active is not for --op allreduce");
  EXPECT(complaint(with("--inside", "mpi-host")) == "--inside is not for --op allreduce");
  EXPECT(complaint({"--op=matrix", "--sizes=8", "--matrix=m", "--assemble=mpi-host"}) ==
         "--assemble is not for --op matrix");
  EXPECT(complaint({"--op=stream", "--sizes=8", "--group-size=2"}) ==
         "--group-size is not for --op stream");
  EXPECT(complaint({"--op=striping", "--sizes=8", "--active=1"}) ==
         "--active is not for --op striping");
  EXPECT(complaint({"--op=pairs", "--sizes=8", "--direction=outbound"}) ==
         "--direction is not for --op pairs");
  EXPECT(complaint({"--op=ring", "--sizes=8", "--inside=mpi-host"}) ==
         "--inside is not for --op ring");
  EXPECT(complaint({"--op=ring", "--sizes=8", "--matrix=m"}) == "--matrix is not for --op ring");
  EXPECT(harness::contains(complaint({"--op=striping", "--sizes=8", "--backend=xccl",
                                      "--assemble=ipc-get", "--timing=batched"}),
                           "not with --inside, --between or --assemble"));
  EXPECT(complaint({"--op=matrix", "--sizes=8"}) == "matrix needs --matrix FILE");
  EXPECT(complaint({"--op=striping", "--sizes=8", "--backend=xccl", "--between=mpi-host"}) ==
         "mpi-host and xccl don't work on the same memory: name backends for the host or for GPUs");
  EXPECT(harness::contains(complaint({"--op=striping", "--sizes=8", "--assemble=ipc-get"}),
                           "ipc-get and mpi-host don't work on the same memory"));
  for (const char* on_stream : {"--timing=batched", "--timer=device"}) {
    EXPECT(harness::contains(complaint({"--op=matrix", "--sizes=8", "--matrix=m", "--backend=xccl",
                                        "--inside=ipc-put", on_stream}),
                             "not with --inside, --between or --assemble"));
  }
  EXPECT(complaint(with("--rotate", "maybe")) == "--rotate: 'maybe' is neither yes nor no");
  EXPECT(complaint(with("--bind", "core")) == "--bind: 'core' is neither none nor gpu");
  EXPECT(harness::contains(complaint(with("--bind", "gpu")), "mpi-host uses none"));
  EXPECT(harness::contains(complaint(with("--share-gpus", "yes")), "mpi-host uses none"));
  EXPECT(complaint(with("--end", "soon")) == "--end: 'soon' is neither clean nor quick");
  EXPECT(complaint({"--op=rail", "--sizes=8", "--group-size=2", "--active=3"}) ==
         "--active is more than --group-size");
  EXPECT(complaint({"--op=pairs", "--sizes=8", "--mode=trace"}) ==
         "--mode trace is not for --op pairs");
  EXPECT(complaint({"--op=rail", "--sizes=8", "--mode=trace"}) ==
         "--mode trace is not for --op rail");
  EXPECT(harness::contains(complaint(with("--timing", "quick")), "neither blocking nor batched"));
  EXPECT(harness::contains(complaint(with("--timer", "sun")), "neither wall nor device"));
  EXPECT(complaint(with("--wait", "long")) == "--wait: 'long' is neither stream nor poll");
  EXPECT(complaint(with("--allocator", "mine")) ==
         "--allocator: 'mine' is neither runtime nor library");
  EXPECT(harness::contains(complaint({"--op=matrix", "--sizes=8", "--matrix=m", "--backend=xccl",
                                      "--inside=ipc-put", "--allocator=library"}),
                           "for a single backend"));
  EXPECT(harness::contains(complaint({"--op=rail", "--sizes=8", "--direction=up"}),
                           "neither outbound nor bidirectional"));
}

TEST(aggressors_beside_a_run_take_the_words_of_those_by_themselves) {
  const std::vector<std::string> enough{
      "--op=ring",       "--sizes=8",   "--aggressors=last:2", "--pattern=alltoall",
      "--message=65536", "--burst=0.1", "--pause=0.2",         "--longest=60"};
  const Options options = parse_command_line(enough).options;
  EXPECT(has_aggressors(options));
  EXPECT(options.aggressor.pattern == Pattern::alltoall);
  EXPECT(options.aggressor.message == 65536);
  EXPECT(options.aggressor.bursts.pause_s == 0.2);
  EXPECT(aggressor_backend(options) == "mpi-host");
  EXPECT(!uses_gpu(options));
  const auto more = [&enough](const char* argument) {
    auto arguments = enough;
    arguments.emplace_back(argument);
    return arguments;
  };
  const Options two = parse_command_line(more("--aggressor-backend=xccl")).options;
  EXPECT(aggressor_backend(two) == "xccl");
  EXPECT(uses_gpu(two));
  EXPECT(aggressor_backend(parse_command_line(more("--backend=xccl")).options) == "xccl");
  EXPECT(complaint(more("--mode=trace")) == "--aggressors is for --mode measure");
  EXPECT(complaint(more("--stop-file=f")) == "--stop-file needs --mode aggress");
  EXPECT(complaint({"--op=ring", "--sizes=8", "--aggressors=last:2"}) ==
         "--pattern is missing: incast or alltoall");
  EXPECT(complaint({"--op=ring", "--sizes=8", "--pattern=incast"}) ==
         "--pattern needs --mode aggress or --aggressors");
  EXPECT(complaint({"--op=ring", "--sizes=8", "--aggressor-backend=xccl"}) ==
         "--aggressor-backend needs --aggressors");
  EXPECT(complaint({"--mode=aggress", "--pattern=incast", "--message=8", "--aggressors=last:2"}) ==
         "--aggressors is not for --mode aggress");
}

TEST(a_matrix_file_is_read_line_by_line) {
  const std::string path = "matrix.txt";
  const auto wrong = [&](const char* lines) {
    return harness::message_of<UsageError>([&] { parse_flows(lines, path); });
  };
  const auto flows = parse_flows("# a comment\n0 1 10\n\n1 0 0\n2 2 5.5 # self\n", path);
  EXPECT(flows.size() == 2);
  EXPECT(flows[1].from == 2 && flows[1].to == 2 && flows[1].bytes == 5.5);
  const std::string needs = ": needs three numbers from 0: sender, receiver, bytes";
  EXPECT(wrong("0 1 10\n0 1\n") == path + ":2" + needs);
  EXPECT(wrong("0 -1 10\n") == path + ":1" + needs);
  EXPECT(wrong("0 1 10 11\n") == path + ":1" + needs);
  EXPECT(wrong("0 1 nan\n") == path + ":1" + needs);
  EXPECT(wrong("# none\n") == "--matrix: nobody sends anything in " + path);
  EXPECT(wrong("") == "--matrix: nobody sends anything in " + path);
}

TEST(help_and_version_need_nothing_else) {
  EXPECT(harness::contains(parse_command_line({"--backends"}).print, "mpi-host"));
  EXPECT(harness::contains(parse_command_line({"--help"}).print, "usage:"));
  EXPECT(harness::contains(parse_command_line({"--version"}).print, "commtune-bench"));
}
