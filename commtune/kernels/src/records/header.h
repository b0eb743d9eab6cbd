#pragma once

#include <cstddef>
#include <string>

#include "cli/options.h"
#include "ranks/placement.h"
#include "records/json.h"
#include "records/records.h"

namespace commtune {

/// What the headers of all kinds of runs have in common: their beginning, then their end.
json::Object begin_header(const RunFacts& facts, const Options& options);

/// @param ranks how many of the first ones the header is about
std::string end_header(json::Object& record, const RunFacts& facts, const Placement& placement,
                       std::size_t ranks);

/// Of ranks that follow each other, from `first` to before `end`; they are numbered among
/// themselves.
std::string rank_info_json(const Placement& placement, const RunFacts& facts, std::size_t first,
                           std::size_t end);

}  // namespace commtune
