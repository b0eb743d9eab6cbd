#include "ranks/roles.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>

#include "error.h"

namespace commtune {

namespace {

constexpr int kMostRanks = 1 << 24;

[[noreturn]] void fail(const std::string& text) {
  throw UsageError("--aggressors: '" + text +
                   "' is neither last:N nor every:N (from 2) nor a list of ranks such as 1,3,6-7");
}

/// -1 where the text is no number of a rank.
int number_in(std::string_view text) {
  int number = -1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = read.ec == std::errc{} && read.ptr == text.data() + text.size();
  return is_whole && number >= 0 && number < kMostRanks ? number : -1;
}

std::pair<int, int> range_in(std::string_view text, const std::string& whole) {
  const std::size_t dash = text.find('-');
  const int first = number_in(text.substr(0, dash));
  const int last = dash == std::string_view::npos ? first : number_in(text.substr(dash + 1));
  if (first < 0 || last < first) fail(whole);
  return {first, last};
}

std::vector<std::pair<int, int>> ranges_in(const std::string& text) {
  std::vector<std::pair<int, int>> ranges;
  std::string_view left = text;
  for (;;) {
    const std::size_t comma = left.find(',');
    ranges.push_back(range_in(left.substr(0, comma), text));
    if (comma == std::string_view::npos) return ranges;
    left.remove_prefix(comma + 1);
  }
}

std::set<int> listed(const std::vector<std::pair<int, int>>& ranges, int ranks) {
  std::set<int> all;
  for (const auto& [first, last] : ranges) {
    if (last >= ranks) {
      throw UsageError("--aggressors: names rank " + std::to_string(last) + ", but there are " +
                       std::to_string(ranks) + " ranks");
    }
    for (int rank = first; rank <= last; ++rank) all.insert(rank);
  }
  return all;
}

bool is_asked_for(const AggressorRanks& asked, const std::set<int>& named, int rank, int ranks) {
  switch (asked.kind) {
    case AggressorRanks::Kind::none:
      return false;
    case AggressorRanks::Kind::last:
      return rank >= ranks - asked.number;
    case AggressorRanks::Kind::every:
      return rank % asked.number == asked.number - 1;
    case AggressorRanks::Kind::listed:
      return named.count(rank) != 0;
  }
  throw Error("a way to name aggressors that is none");
}

}  // namespace

AggressorRanks parse_aggressor_ranks(const std::string& text) {
  AggressorRanks asked;
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) {
    asked.kind = AggressorRanks::Kind::listed;
    asked.ranges = ranges_in(text);
    return asked;
  }
  const std::string word = text.substr(0, colon);
  if (word != "last" && word != "every") fail(text);
  asked.kind = word == "last" ? AggressorRanks::Kind::last : AggressorRanks::Kind::every;
  asked.number = number_in(std::string_view(text).substr(colon + 1));
  if (asked.number < 2) fail(text);
  return asked;
}

bool Roles::is_aggressor(int rank) const {
  return std::binary_search(aggressors.begin(), aggressors.end(), rank);
}

Roles roles_of(const AggressorRanks& asked, int ranks) {
  const std::set<int> named = listed(asked.ranges, ranks);
  Roles roles;
  for (int rank = 0; rank < ranks; ++rank) {
    const bool aggresses = is_asked_for(asked, named, rank, ranks);
    (aggresses ? roles.aggressors : roles.victims).push_back(rank);
  }
  if (roles.aggressors.size() < 2 || roles.victims.empty()) {
    throw UsageError("--aggressors: of " + std::to_string(ranks) + " ranks " +
                     std::to_string(roles.aggressors.size()) +
                     " would be aggressors: 2 are needed at least, and one that measures");
  }
  return roles;
}

}  // namespace commtune
