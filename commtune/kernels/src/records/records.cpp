#include "records/records.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "error.h"
#include "operations/steps.h"
#include "records/header.h"
#include "records/json.h"
#include "timing/statistics.h"

namespace commtune {

namespace {

/// Samples in tenths of a nanosecond, which is finer than any clock and shorter than nine digits.
std::string samples_json(const std::vector<double>& samples_s) {
  std::string result = "[";
  std::array<char, 32> text{};
  for (const double sample_s : samples_s) {
    std::snprintf(text.data(), text.size(), "%.1f", sample_s * 1e9);
    result.append(result.size() > 1 ? "," : "").append(text.data());
  }
  return result + "]";
}

std::string times_json(const Summary& times) {
  return json::Object()
      .number("min", times.min)
      .number("p5", times.p5)
      .number("p25", times.p25)
      .number("median", times.median)
      .number("p75", times.p75)
      .number("p95", times.p95)
      .number("p99", times.p99)
      .number("max", times.max)
      .number("mean", times.mean)
      .number("stdev", times.stdev)
      .str();
}

std::string optional_number(const std::optional<double>& value) {
  return value ? json::number(*value) : "null";
}

std::string canary_json(const SizeResult& result) {
  return json::Object()
      .raw("before", optional_number(result.canary_before_ns))
      .raw("after", optional_number(result.canary_after_ns))
      .str();
}

/// What the shape of an operation made of messages depends on; only what it uses.
std::string shape_json(const Options& options) {
  const Shape& shape = options.shape;
  const Operation operation = options.operation;
  json::Object object;
  if (operation == Operation::stream) {
    object.integer("window", static_cast<std::uint64_t>(shape.window));
  }
  if (is_grouped(operation)) {
    object.integer("group_size", static_cast<std::uint64_t>(shape.group_size));
    if (operation != Operation::striping) {
      object.integer("active", static_cast<std::uint64_t>(shape.active))
          .text("direction", word(shape.direction));
    }
  }
  if (!options.inside.empty()) object.text("inside", options.inside);
  if (!options.between.empty()) object.text("between", options.between);
  if (!options.assemble.empty()) object.text("assemble", options.assemble);
  return object.str();
}

std::string timing_json(const Options& options) {
  json::Object object;
  object.text("mode", word(options.timing)).text("timer", word(options.timer));
  if (options.backend_options.waiting != Waiting::stream)
    object.text("wait", word(options.backend_options.waiting));
  if (options.backend_options.allocator != Allocator::runtime) {
    object.text("allocator", word(options.backend_options.allocator));
  }
  if (options.graph) object.boolean("graph", true);
  if (options.rotate) object.boolean("rotate", true);
  if (options.operations > 0) {
    object.integer("operations", static_cast<std::uint64_t>(options.operations));
  }
  return object.str();
}

std::string gpus_json(const Totals& totals) {
  std::vector<std::string> gpus;
  gpus.reserve(totals.gpus_before.size());
  for (std::size_t i = 0; i < totals.gpus_before.size(); ++i) {
    gpus.push_back(json::Object()
                       .raw("before", totals.gpus_before[i])
                       .raw("after", totals.gpus_after[i])
                       .str());
  }
  return json::array(gpus);
}

std::string numbers_json(const std::vector<int>& numbers) {
  std::vector<std::string> elements;
  elements.reserve(numbers.size());
  for (const int number : numbers) elements.push_back(std::to_string(number));
  return json::array(elements);
}

json::Object& add_pattern(json::Object& record, const AggressorOptions& asked, int window) {
  return record.text("pattern", word(asked.pattern))
      .integer("message_bytes", asked.message)
      .integer("window", static_cast<std::uint64_t>(window))
      .number("burst_s", asked.bursts.burst_s)
      .number("pause_s", asked.bursts.pause_s);
}

std::string beside_json(const RunFacts& facts, const Options& options, const Placement& placement) {
  const Roles& roles = *facts.roles;
  json::Object object;
  object.text("backend", aggressor_backend(options));
  return add_pattern(object, options.aggressor, facts.aggressor_window)
      .raw("ranks", numbers_json(roles.aggressors))
      .raw("victims", numbers_json(roles.victims))
      .raw("rank_info",
           rank_info_json(placement, facts, roles.victims.size(), placement.ranks().size()))
      .str();
}

json::Object& add_traffic(json::Object& record, const Traffic& traffic) {
  return record.integer("bytes_moved", traffic.bytes_moved)
      .integer("bytes_between_nodes", traffic.bytes_between_nodes)
      .number("traffic_s", traffic.traffic_s)
      .number("active_s", traffic.active_s);
}

/// What aggressors beside a run did in a span of time.
std::string activity_json(const Traffic& traffic, bool active) {
  json::Object object;
  object.boolean("active", active);
  return add_traffic(object, traffic).str();
}

void add_layout(json::Object& record, const Layout& layout) {
  record.integer("bytes", layout.bytes)
      .integer("count", layout.count)
      .text("bytes_meaning", layout.meaning)
      .integer("bytes_per_rank", layout.bytes_per_rank)
      .integer("bytes_per_peer", layout.bytes_per_peer)
      .integer("bytes_total", layout.bytes_total);
}

}  // namespace

RecordFile::RecordFile(const std::string& path)
    : file_(path.empty() ? stdout : std::fopen(path.c_str(), "w")) {
  if (!file_) throw Error("can't write " + path + ": " + std::strerror(errno));
}

void RecordFile::Close::operator()(std::FILE* file) const {
  if (file != stdout) std::fclose(file);
}

void RecordFile::write_line(const std::string& record) { write_raw(record + "\n"); }

void RecordFile::write_raw(std::string_view text) {
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), file_.get());
  if (written != text.size() || std::fflush(file_.get()) != 0) {
    throw Error(std::string("can't write a record: ") + std::strerror(errno));
  }
}

std::string environment_json(const std::vector<std::string>& names) {
  json::Object environment;
  for (const std::string& name : names) {
    if (const char* value = std::getenv(name.c_str())) environment.text(name, value);
  }
  return environment.str();
}

std::string header_record(const RunFacts& facts, const Options& options,
                          const Placement& placement) {
  json::Object record = begin_header(facts, options);
  record.integer("seed", options.seed)
      .text("operation", word(options.operation))
      .text("dtype", word(options.type))
      .text("reduction", word(options.reduction))
      .text("memory", facts.memory)
      .raw("timing", timing_json(options))
      .raw("shape", shape_json(options));
  if (!facts.library.empty()) {
    record.raw(
        "library",
        json::Object().text("name", facts.library).number("init_s", facts.library_init_s).str());
  }
  if (!facts.gpus.empty()) {
    record.number("gpu_start_s", facts.gpu_start_s).number("gpu_facts_s", facts.gpu_facts_s);
  }
  if (options.bind == Bind::gpu) record.text("bind", facts.binds_late ? "gpu-late" : "gpu");
  if (facts.roles == nullptr) return end_header(record, facts, placement, placement.ranks().size());
  record.raw("aggressors", beside_json(facts, options, placement));
  return end_header(record, facts, placement, facts.roles->victims.size());
}

std::string measurement_record(const SizeResult& result, bool named, bool oversubscribed) {
  const Layout& layout = result.layout;
  const Summary times = summarise(result.samples_s);
  const double algorithm_bandwidth = static_cast<double>(layout.bytes_total) / times.median;
  json::Object record;
  record.text("record", "measurement");
  if (named) record.text("operation", word(layout.operation));
  add_layout(record, layout);
  if (result.part != Part::whole) record.text("part", word(result.part));
  if (result.pair) {
    record.raw("pair", json::array({std::to_string(result.pair->first),
                                    std::to_string(result.pair->second)}));
  }
  record.text("made_of", result.is_call ? "call" : "messages");
  if (result.aggressors) {
    record.raw("aggressors", activity_json(*result.aggressors, result.aggressors->bytes_moved > 0));
  }
  return record.integer("warmup", static_cast<std::uint64_t>(result.warmup))
      .integer("samples", result.samples_s.size())
      .integer("batch", static_cast<std::uint64_t>(result.batch))
      .raw("samples_ns", samples_json(result.samples_s))
      .raw("time_s", times_json(times))
      .raw("median_ci_s",
           json::array({json::number(times.median_low), json::number(times.median_high)}))
      .text("stop", word(result.stop))
      .number("algbw_Bps", algorithm_bandwidth)
      .number("busbw_Bps", algorithm_bandwidth * bus_factor(layout.operation, layout.ranks))
      .number("first_call_s", result.first_call_s)
      .raw("rank_skew", optional_number(result.rank_skew))
      .raw("canary_ns", canary_json(result))
      .integer("wrong", result.check.wrong)
      .integer("checked", result.check.checked)
      .text("status", result.check.wrong == 0 ? "ok" : "wrong")
      .boolean("oversubscribed", oversubscribed)
      .number("elapsed_s", result.elapsed_s)
      .str();
}

std::string trace_record(const TraceResult& result) {
  const std::string agree = !result.agree ? "null" : *result.agree ? "true" : "false";
  return json::Object()
      .text("record", "trace")
      .integer("bytes", result.bytes)
      .integer("operations", result.operations)
      .raw("digest", result.digest ? json::quoted(*result.digest) : "null")
      .raw("agree", agree)
      .raw("messages", result.messages ? json::quoted(*result.messages) : "null")
      .str();
}

std::string footer_record(const Totals& totals) {
  json::Object record;
  record.text("record", "footer")
      .text("status", totals.wrong ? "wrong" : "ok")
      .integer("measurements", static_cast<std::uint64_t>(totals.measurements))
      .number("elapsed_s", totals.elapsed_s)
      .number("init_s", totals.init_s)
      .number("measure_s", totals.measure_s);
  if (totals.aggressors) {
    record.raw("aggressors", activity_json(*totals.aggressors, totals.aggressors_active));
  }
  if (!totals.gpus_before.empty()) record.raw("gpus", gpus_json(totals));
  return record.str();
}

std::string aggressor_header_record(const RunFacts& facts, const Options& options,
                                    const Placement& placement, int window) {
  const AggressorOptions& asked = options.aggressor;
  json::Object record = begin_header(facts, options);
  record.text("mode", "aggress");
  add_pattern(record, asked, window).number("longest_s", asked.longest_s);
  return end_header(record, facts, placement, placement.ranks().size());
}

std::string traffic_record(const Traffic& traffic) {
  json::Object record;
  record.text("record", "traffic");
  return add_traffic(record, traffic).str();
}

std::string aggressor_footer_record(const Totals& totals, const Traffic& traffic, Ending ending) {
  json::Object record;
  record.text("record", "footer").text("status", "ok").integer("measurements", 0);
  return add_traffic(record, traffic)
      .text("ended_by", word(ending))
      .number("elapsed_s", totals.elapsed_s)
      .number("init_s", totals.init_s)
      .str();
}

}  // namespace commtune
