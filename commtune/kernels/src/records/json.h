#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace commtune::json {

/// Text as a JSON string, quotes included. Bytes that are no UTF-8 become U+FFFD.
std::string quoted(std::string_view text);

/// A number with nine digits; null for what JSON has no number for (NaN, infinity).
std::string number(double value);

std::string array(const std::vector<std::string>& elements);

/// One object, written member by member in the order given.
class Object {
 public:
  Object& text(std::string_view name, std::string_view value);
  Object& number(std::string_view name, double value);
  Object& integer(std::string_view name, std::uint64_t value);
  Object& boolean(std::string_view name, bool value);
  /// A member whose value is JSON already.
  Object& raw(std::string_view name, std::string_view json);

  std::string str() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

}  // namespace commtune::json
