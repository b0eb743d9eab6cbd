#pragma once

#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <vector>

/// A small test harness: TEST bodies run in the order written, EXPECT counts what fails, and the
/// program's exit status says whether anything did.
namespace harness {

struct Case {
  const char* name;
  std::function<void()> body;
};

inline std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

inline int& failures() {
  static int count = 0;
  return count;
}

struct Register {
  Register(const char* name, std::function<void()> body) {
    cases().push_back({name, std::move(body)});
  }
};

inline void expect(bool holds, const char* text, const char* file, int line) {
  if (holds) return;
  ++failures();
  std::printf("%s:%d: does not hold: %s\n", file, line, text);
}

inline bool near(double a, double b, double relative = 1e-12) {
  return std::fabs(a - b) <= relative * std::fmax(std::fabs(a), std::fabs(b));
}

/// The message of the Exception that `act` throws; a text that no message equals if it doesn't.
template <class Exception>
std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Exception& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace harness

#define TEST(name)                                                    \
  static void test_##name();                                          \
  static const harness::Register register_##name(#name, test_##name); \
  static void test_##name()

#define EXPECT(condition) harness::expect((condition), #condition, __FILE__, __LINE__)

int main() {
  for (const auto& test : harness::cases()) {
    try {
      test.body();
    } catch (const std::exception& error) {
      ++harness::failures();
      std::printf("%s: unexpected exception: %s\n", test.name, error.what());
    }
  }
  std::printf("%zu tests, %d failures\n", harness::cases().size(), harness::failures());
  // A test program that tests nothing is a mistake too.
  return harness::failures() == 0 && !harness::cases().empty() ? 0 : 1;
}
