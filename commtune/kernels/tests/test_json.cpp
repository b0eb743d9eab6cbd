#include <limits>

#include "harness.h"
#include "records/json.h"

using namespace commtune;

TEST(quotes_backslashes_and_control_characters_are_escaped) {
  EXPECT(json::quoted("a\"b\\c") == R"("a\"b\\c")");
  EXPECT(json::quoted("a\nb\tc\x01") == R"("a\u000ab\u0009c\u0001")");
  EXPECT(json::quoted(std::string_view("a\0b", 3)) == R"("a\u0000b")");
  EXPECT(json::quoted("") == R"("")");
}

TEST(utf8_passes_unchanged) {
  const std::string text = "\u00e9 \u20ac \U0001F600";
  EXPECT(json::quoted(text) == "\"" + text + "\"");
}

TEST(bytes_that_are_no_utf8_are_replaced_one_by_one) {
  EXPECT(json::quoted("a\xFFz") == R"("a\ufffdz")");
  EXPECT(json::quoted("\xC3") == R"("\ufffd")");            // cut short
  EXPECT(json::quoted("\xC0\x80") == R"("\ufffd\ufffd")");  // overlong
  EXPECT(json::quoted("\xE0\x80\x80") == R"("\ufffd\ufffd\ufffd")");
  EXPECT(json::quoted("\xED\xA0\x80") == R"("\ufffd\ufffd\ufffd")");  // a surrogate
  EXPECT(json::quoted("\xF5\x80\x80\x80") == R"("\ufffd\ufffd\ufffd\ufffd")");
  EXPECT(json::quoted("\xE2\x82z") == R"("\ufffd\ufffdz")");
}

TEST(numbers_that_json_lacks_are_null) {
  EXPECT(json::number(std::numeric_limits<double>::quiet_NaN()) == "null");
  EXPECT(json::number(std::numeric_limits<double>::infinity()) == "null");
  EXPECT(json::number(0.25) == "0.25");
  EXPECT(json::number(1.23456789e-7) == "1.23456789e-07");
}

TEST(objects_keep_the_order_of_their_members) {
  const std::string text =
      json::Object().text("b", "x").integer("a", 18446744073709551615ULL).boolean("c", true).str();
  EXPECT(text == R"({"b":"x","a":18446744073709551615,"c":true})");
  EXPECT(json::Object().str() == "{}");
  EXPECT(json::array({"1", "2"}) == "[1,2]");
  EXPECT(json::array({}) == "[]");
}
