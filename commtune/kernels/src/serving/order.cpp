#include "serving/order.h"

#include <cstddef>
#include <sstream>

#include "cli/numbers.h"
#include "error.h"

namespace commtune {

Order parse_order(const std::string& line) {
  std::istringstream in(line);
  std::string field;
  Order order;
  std::getline(in, field, '\t');
  order.limit_s = parse_number("the limit of an order", field, 0.0, 1e6);
  std::getline(in, field, '\t');
  const auto count = parse_number<std::size_t>("the variables of an order", field, 0, 100'000);
  while (std::getline(in, field, '\t')) {
    const bool is_variable = order.variables.size() < count;
    if (is_variable && field.find('=') == std::string::npos) {
      throw UsageError("a variable of an order is NAME=VALUE, not '" + field + "'");
    }
    (is_variable ? order.variables : order.arguments).push_back(field);
  }
  if (order.arguments.empty()) throw UsageError("an order without arguments");
  return order;
}

}  // namespace commtune
