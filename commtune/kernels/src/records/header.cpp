#include "records/header.h"

#include <sys/utsname.h>
#include <time.h>

#include <array>

#include "build_info.h"
#include "ranks/world.h"
#include "records/libraries.h"
#include "timing/clock.h"

namespace commtune {

namespace {

std::string utc_now() {
  const time_t now = time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::string kernel() {
  utsname names{};
  if (uname(&names) != 0) return "unknown";
  return std::string(names.sysname) + " " + names.release + " " + names.machine;
}

std::string text_array(const std::vector<std::string>& texts) {
  std::vector<std::string> elements;
  elements.reserve(texts.size());
  for (const std::string& text : texts) elements.push_back(json::quoted(text));
  return json::array(elements);
}

std::string versions_json(const std::vector<std::string>& libraries) {
  json::Object versions;
  for (const auto& [name, version] : library_versions(libraries)) versions.text(name, version);
  return versions.str();
}

std::string benchmark_json() {
  const BuildInfo info = build_info();
  return json::Object()
      .text("version", info.version)
      .text("compiler", info.compiler)
      .text("flags", info.flags)
      .text("build_id", info.build_id)
      .str();
}

}  // namespace

std::string rank_info_json(const Placement& placement, const RunFacts& facts, std::size_t first,
                           std::size_t end) {
  std::vector<std::string> ranks;
  for (std::size_t i = first; i < end; ++i) {
    const RankPlace& rank = placement.ranks()[i];
    json::Object info;
    info.integer("rank", i - first)
        .integer("node", static_cast<std::uint64_t>(rank.node))
        .integer("local_rank", static_cast<std::uint64_t>(rank.local_rank))
        .text("host", rank.host)
        .integer("pid", static_cast<std::uint64_t>(rank.pid))
        .text("cpus", cpu_list(rank.cpus))
        .raw("environment", facts.environments[i]);
    if (!facts.controls.empty()) info.raw("controls", facts.controls[i]);
    if (!facts.gpus.empty()) info.raw("gpu", facts.gpus[i]).raw("nic", facts.nics[i]);
    ranks.push_back(info.str());
  }
  return json::array(ranks);
}

json::Object begin_header(const RunFacts& facts, const Options& options) {
  const std::string clock = json::Object()
                                .text("name", Clock::name())
                                .number("resolution_s", Clock::resolution_s())
                                .str();
  json::Object record;
  return record.text("record", "header")
      .integer("contract", kContract)
      .text("run_id", options.run_id)
      .raw("benchmark", benchmark_json())
      .raw("argv", text_array(facts.arguments))
      .raw("clock", clock)
      .text("backend", facts.backend);
}

std::string end_header(json::Object& record, const RunFacts& facts, const Placement& placement,
                       std::size_t ranks) {
  const std::string mpi =
      json::Object().text("library", World::library()).text("standard", World::standard()).str();
  const std::vector<std::string> libraries = communication_libraries();
  const Placement own = placement.first(static_cast<int>(ranks));
  record.integer("ranks", ranks).integer("nodes", static_cast<std::uint64_t>(own.nodes()));
  if (own.emulates_nodes()) record.text("nodes_by", kNodeVariable);
  if (facts.in_shared_launch) record.boolean("in_shared_launch", true);
  return record.raw("mpi", mpi)
      .raw("libraries", text_array(libraries))
      .raw("versions", versions_json(libraries))
      .text("started_utc", utc_now())
      .text("kernel", kernel())
      .boolean("oversubscribed", placement.oversubscribed())
      .number("init_s", facts.init_s)
      .raw("rank_info", rank_info_json(placement, facts, 0, ranks))
      .str();
}

}  // namespace commtune
