#pragma once

#include <optional>
#include <string>
#include <vector>

namespace commtune {

/// What the MPI library holds of one of its control variables (MPI_T).
struct Control {
  std::string kind;                ///< integer, number, text, or unreadable
  std::string value;               ///< empty where it is unreadable
  std::string word;                ///< the library's word for the value, where it has words
  std::vector<std::string> words;  ///< all words that the library has for this variable
};

/// The control variable of this name; none where the library has no such variable. It must be
/// called between MPI_Init and MPI_Finalize.
std::optional<Control> find_control(const std::string& name);

/// The control variables among `names` as a JSON object: null for those that don't exist.
std::string controls_json(const std::vector<std::string>& names);

}  // namespace commtune
