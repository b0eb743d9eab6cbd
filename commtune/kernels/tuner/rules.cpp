#include "rules.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

namespace tuner {
namespace {

constexpr off_t kMostFileBytes = 1 << 20;
constexpr size_t kMostRules = 1000;
constexpr int kMostChannels = 64;  // NCCL's limit
/// Written by commtune before the rules, with their number: a file that is cut short shows.
constexpr std::string_view kCount = "# rules: ";
constexpr std::string_view kBlanks = " \t";

[[noreturn]] void fail_at(int line, const std::string& why) {
  throw Unusable("line " + std::to_string(line) + ": " + why);
}

std::string quoted(std::string_view word) {
  std::string text = "'";
  for (const char sign : word.substr(0, 40)) text += sign >= ' ' && sign <= '~' ? sign : '?';
  return text + (word.size() > 40 ? "...'" : "'");
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t start = 0; start <= line.size();) {
    const size_t end = std::min(line.find(',', start), line.size());
    fields.push_back(trimmed(line.substr(start, end - start)));
    start = end + 1;
  }
  return fields;
}

template <size_t kNumber>
int number_of(const std::array<const char*, kNumber>& words, std::string_view word,
              const char* what, int line) {
  std::string known;
  for (size_t i = 0; i < kNumber; ++i) {
    if (word == words[i]) return static_cast<int>(i);
    known += std::string(i == 0 ? "" : ", ") + words[i];
  }
  fail_at(line, quoted(word) + " is no " + what + ": one of " + known);
}

template <class Number>
Number parse_number(std::string_view text, Number least, Number most, const char* what, int line) {
  Number value = 0;
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [parsed, error] = std::from_chars(begin, end, value);
  if (error == std::errc() && parsed == end && value >= least && value <= most) return value;
  fail_at(line, quoted(text) + " is no " + what + ": a number from " + std::to_string(least) +
                    " to " + std::to_string(most));
}

/// Such as nodes: from 1, or -1 for any.
int parse_match(std::string_view text, int most, const char* what, int line) {
  const int value = parse_number<int>(text, kAny, most, what, line);
  if (value == 0 && most != 1) fail_at(line, std::string(what) + " is 0: from 1, or -1 for any");
  return value;
}

Rule parse_rule(std::string_view text, int line) {
  const auto fields = fields_of(text);
  if (fields.size() < 8 || fields.size() > 10) {
    fail_at(line, std::to_string(fields.size()) + " fields, and a rule has 8 to 10");
  }
  constexpr uint64_t kMostBytes = UINT64_MAX;
  Rule rule;
  rule.line = line;
  rule.collective = number_of(kCollectives, fields[0], "collective", line);
  rule.least_bytes = parse_number<uint64_t>(fields[1], 0, kMostBytes, "size", line);
  rule.most_bytes = parse_number<uint64_t>(fields[2], 0, kMostBytes, "size", line);
  if (rule.least_bytes > rule.most_bytes) fail_at(line, "the smallest size is above the largest");
  rule.algorithm = number_of(kAlgorithms, fields[3], "algorithm", line);
  rule.protocol = number_of(kProtocols, fields[4], "protocol", line);
  rule.channels = parse_number<int>(fields[5], -1, kMostChannels, "number of channels", line);
  if (rule.channels < 0) rule.channels = 0;
  rule.nodes = parse_match(fields[6], INT32_MAX, "number of nodes", line);
  rule.ranks = parse_match(fields[7], INT32_MAX, "number of ranks", line);
  if (fields.size() > 8) {
    rule.pipe_operations =
        parse_match(fields[8], INT32_MAX, "number of pipelined operations", line);
  }
  if (fields.size() > 9) rule.registered = parse_match(fields[9], 1, "registered buffer", line);
  return rule;
}

uint64_t digest_of(std::string_view text) {
  uint64_t digest = 0xcbf29ce484222325;  // FNV-1a
  for (const char byte : text) digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return digest;
}

class Descriptor {
 public:
  explicit Descriptor(const std::string& path)
      : number_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

std::string text_of(const std::string& path) {
  const Descriptor file(path);
  struct stat status = {};
  if (file.number() < 0 || fstat(file.number(), &status) != 0) throw Unusable(std::strerror(errno));
  // A pipe or a device may never end.
  if (!S_ISREG(status.st_mode)) throw Unusable("it is no file");
  if (status.st_size > kMostFileBytes) throw Unusable("it is larger than 1 MiB");
  std::string text;
  std::array<char, 65536> part = {};
  for (;;) {
    const ssize_t count = read(file.number(), part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Unusable(std::strerror(errno));
    if (count == 0) return text;
    text.append(part.data(), static_cast<size_t>(count));
  }
}

}  // namespace

RuleFile parse_rules(const std::string& text) {
  if (text.empty()) throw Unusable("it is empty");
  RuleFile file;
  file.digest = digest_of(text);
  size_t announced = SIZE_MAX;
  int number = 0;
  for (size_t start = 0; start < text.size();) {
    ++number;
    const size_t end = text.find('\n', start);
    // Its last number may lack digits.
    if (end == std::string::npos) fail_at(number, "it has no end: the file is cut short");
    std::string_view line = std::string_view(text).substr(start, end - start);
    start = end + 1;
    if (!line.empty() && line.back() == '\r') {
      file.has_crlf = true;
      line.remove_suffix(1);
    }
    if (line.substr(0, kCount.size()) == kCount) {
      announced = parse_number<size_t>(trimmed(line.substr(kCount.size())), 0, kMostFileBytes,
                                       "number of rules", number);
    }
    line = trimmed(line);
    if (!line.empty() && line.front() != '#') file.rules.push_back(parse_rule(line, number));
  }
  if (announced != SIZE_MAX && announced != file.rules.size()) {
    throw Unusable("it has " + std::to_string(file.rules.size()) + " of " +
                   std::to_string(announced) + " rules: it is cut short, or was changed");
  }
  if (file.rules.empty()) throw Unusable("it has no rules");
  if (file.rules.size() > kMostRules) throw Unusable("it has more than 1000 rules");
  return file;
}

RuleFile read_rules(const std::string& path) { return parse_rules(text_of(path)); }

}  // namespace tuner
