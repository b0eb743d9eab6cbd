#pragma once

#include <string>
#include <utility>
#include <vector>

namespace commtune {

/// Which ranks are to be aggressors beside those that measure, as the command line says it.
struct AggressorRanks {
  enum class Kind {
    none,   ///< all ranks measure
    last,   ///< the last `number` ranks
    every,  ///< each rank that ends a group of `number`: of 2, every second one
    listed  ///< those of `ranges`
  };
  Kind kind = Kind::none;
  int number = 0;
  std::vector<std::pair<int, int>> ranges;  ///< first and last
};

/// Reads "last:N", "every:N" or a list such as "1,3,6-7"; UsageError says what is legal.
AggressorRanks parse_aggressor_ranks(const std::string& text);

/// Who does what; both in ascending order, in the launcher's numbering.
struct Roles {
  std::vector<int> victims;
  std::vector<int> aggressors;

  bool is_aggressor(int rank) const;
};

/// UsageError where `asked` names a rank that there is not, or leaves nobody to measure. It has to
/// be something else than none.
Roles roles_of(const AggressorRanks& asked, int ranks);

}  // namespace commtune
