#include "error.h"
#include "harness.h"
#include "serving/order.h"

using commtune::Order;
using commtune::parse_order;
using commtune::UsageError;

namespace {

std::string refusal(const std::string& line) {
  return harness::message_of<UsageError>([&] { parse_order(line); });
}

}  // namespace

TEST(variables_come_before_arguments) {
  const Order order = parse_order("2.5\t2\tA=1\tB=x=y z\tprogram\t--op=ring");
  EXPECT(order.limit_s == 2.5);
  EXPECT((order.variables == std::vector<std::string>{"A=1", "B=x=y z"}));
  EXPECT((order.arguments == std::vector<std::string>{"program", "--op=ring"}));
}

TEST(a_run_may_have_no_variables_and_a_variable_no_value) {
  EXPECT(parse_order("1\t0\tprogram").variables.empty());
  EXPECT(parse_order("1\t1\tA=\tprogram").variables.front() == "A=");
}

TEST(what_is_no_order_is_refused) {
  EXPECT(harness::contains(refusal(""), "the limit of an order"));
  EXPECT(harness::contains(refusal("-1\t0\tprogram"), "the limit of an order"));
  EXPECT(harness::contains(refusal("1\tmany\tprogram"), "the variables of an order"));
  EXPECT(harness::contains(refusal("1\t1\tprogram"), "NAME=VALUE"));
  EXPECT(harness::contains(refusal("1\t0"), "without arguments"));
  EXPECT(harness::contains(refusal("1\t1\tA=1"), "without arguments"));
}
