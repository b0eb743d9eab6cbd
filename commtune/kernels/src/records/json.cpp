#include "records/json.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace commtune::json {

namespace {

struct Range {
  unsigned char low, high;
};

/// Legal values of the byte after a lead byte; the others narrow it to keep out overlong forms,
/// surrogates and what is beyond U+10FFFF (table 3-7 of the Unicode standard).
Range second_byte(unsigned char lead) {
  switch (lead) {
    case 0xE0:
      return {0xA0, 0xBF};
    case 0xED:
      return {0x80, 0x9F};
    case 0xF0:
      return {0x90, 0xBF};
    case 0xF4:
      return {0x80, 0x8F};
    default:
      return {0x80, 0xBF};
  }
}

std::size_t length_by_lead(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

/// Bytes of the UTF-8 character at the beginning of `text`; 0 where there is none.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = length_by_lead(byte(0));
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    const Range range = i == 1 ? second_byte(byte(0)) : Range{0x80, 0xBF};
    if (byte(i) < range.low || byte(i) > range.high) return 0;
  }
  return length;
}

std::string escaped(char character) {
  if (character == '"' || character == '\\') return {'\\', character};
  if (static_cast<unsigned char>(character) >= 0x20) return {character};
  std::array<char, 8> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "\\u%04x", static_cast<unsigned>(character));
  return buffer.data();
}

}  // namespace

std::string quoted(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 1) {
      result += escaped(text.front());
    } else if (length > 1) {
      result += text.substr(0, length);
    } else {
      result += "\\ufffd";
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result + "\"";
}

std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.9g", value);
  return buffer.data();
}

std::string array(const std::vector<std::string>& elements) {
  std::string result = "[";
  for (const std::string& element : elements) {
    if (result.size() > 1) result += ',';
    result += element;
  }
  return result + "]";
}

Object& Object::text(std::string_view name, std::string_view value) {
  return raw(name, quoted(value));
}

Object& Object::number(std::string_view name, double value) {
  return raw(name, json::number(value));
}

Object& Object::integer(std::string_view name, std::uint64_t value) {
  return raw(name, std::to_string(value));
}

Object& Object::boolean(std::string_view name, bool value) {
  return raw(name, value ? "true" : "false");
}

Object& Object::raw(std::string_view name, std::string_view json) {
  if (!members_.empty()) members_ += ',';
  members_.append(quoted(name)).append(":").append(json);
  return *this;
}

}  // namespace commtune::json
