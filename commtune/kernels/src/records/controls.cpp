#include "records/controls.h"

#include <mpi.h>

#include <array>
#include <cstring>
#include <sstream>

#include "error.h"
#include "records/json.h"

namespace commtune {

namespace {

constexpr const char* kUnreadable = "unreadable";
constexpr int kLongestWord = 256;

/// The tools interface is up as long as this lives.
class Tools {
 public:
  Tools() {
    int provided = 0;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) {
      throw Error("the MPI library's tools interface (MPI_T) does not start");
    }
  }
  ~Tools() { static_cast<void>(MPI_T_finalize()); }
  Tools(const Tools&) = delete;
  Tools& operator=(const Tools&) = delete;
};

template <class Number>
std::string number_text(const std::vector<unsigned char>& bytes) {
  Number number{};
  std::memcpy(&number, bytes.data(), sizeof number);
  std::ostringstream text;
  text.precision(17);
  text << number;
  return text.str();
}

std::string character_text(const std::vector<unsigned char>& bytes) {
  const std::string text(bytes.begin(), bytes.end());
  return text.substr(0, text.find('\0'));
}

struct Type {
  MPI_Datatype type;
  const char* kind;
  std::string (*text)(const std::vector<unsigned char>&);
};

/// The table is no constant: the handles of some libraries are known at run time only.
std::optional<Type> find_type(MPI_Datatype type) {
  const std::array<Type, 11> types{{
      {MPI_INT, "integer", number_text<int>},
      {MPI_C_BOOL, "integer", number_text<bool>},
      {MPI_UNSIGNED, "integer", number_text<unsigned>},
      {MPI_LONG, "integer", number_text<long>},
      {MPI_UNSIGNED_LONG, "integer", number_text<unsigned long>},
      {MPI_UNSIGNED_LONG_LONG, "integer", number_text<unsigned long long>},
      {MPI_COUNT, "integer", number_text<MPI_Count>},
      {MPI_INT32_T, "integer", number_text<std::int32_t>},
      {MPI_UINT32_T, "integer", number_text<std::uint32_t>},
      {MPI_DOUBLE, "number", number_text<double>},
      {MPI_CHAR, "text", character_text},
  }};
  for (const Type& row : types) {
    if (row.type == type) return row;
  }
  return std::nullopt;
}

struct Info {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_T_enum words = MPI_T_ENUM_NULL;
  int bind = 0;
};

bool get_info(int index, Info& info) {
  int name_length = 0;
  int description_length = 0;
  int verbosity = 0;
  int scope = 0;
  return MPI_T_cvar_get_info(index, nullptr, &name_length, &verbosity, &info.type, &info.words,
                             nullptr, &description_length, &info.bind, &scope) == MPI_SUCCESS;
}

/// The raw bytes of a variable; empty if it can't be read.
std::vector<unsigned char> read_bytes(int index, MPI_Datatype type) {
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  int count = 0;
  if (MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) != MPI_SUCCESS) return {};
  int size = 0;
  bool is_read = MPI_Type_size(type, &size) == MPI_SUCCESS && count > 0 && size > 0;
  // One element more than is said, zero: a text that fills all of its length stays a text.
  std::vector<unsigned char> bytes(
      is_read ? static_cast<std::size_t>(count + 1) * static_cast<std::size_t>(size) : 0);
  is_read = is_read && MPI_T_cvar_read(handle, bytes.data()) == MPI_SUCCESS;
  static_cast<void>(MPI_T_cvar_handle_free(&handle));
  return is_read ? bytes : std::vector<unsigned char>{};
}

void add_words(MPI_T_enum words, Control& control) {
  int items = 0;
  int name_length = 0;
  if (MPI_T_enum_get_info(words, &items, nullptr, &name_length) != MPI_SUCCESS) return;
  for (int item = 0; item < items; ++item) {
    int value = 0;
    std::array<char, kLongestWord> word{};
    int length = kLongestWord;
    if (MPI_T_enum_get_item(words, item, &value, word.data(), &length) != MPI_SUCCESS) continue;
    control.words.emplace_back(word.data());
    if (std::to_string(value) == control.value) control.word = word.data();
  }
}

Control read_control(int index) {
  Info info;
  if (!get_info(index, info) || info.bind != MPI_T_BIND_NO_OBJECT) return {kUnreadable, {}, {}, {}};
  const auto type = find_type(info.type);
  if (!type) return {kUnreadable, {}, {}, {}};
  const auto bytes = read_bytes(index, info.type);
  if (bytes.empty()) return {kUnreadable, {}, {}, {}};
  Control control{type->kind, type->text(bytes), {}, {}};
  if (info.words != MPI_T_ENUM_NULL) add_words(info.words, control);
  return control;
}

std::string control_json(const Control& control) {
  json::Object object;
  object.text("kind", control.kind).text("value", control.value);
  if (control.words.empty()) return object.str();
  std::vector<std::string> words;
  words.reserve(control.words.size());
  for (const std::string& word : control.words) words.push_back(json::quoted(word));
  return object.text("word", control.word).raw("words", json::array(words)).str();
}

}  // namespace

std::optional<Control> find_control(const std::string& name) {
  const Tools tools;
  int index = 0;
  if (MPI_T_cvar_get_index(name.c_str(), &index) != MPI_SUCCESS) return std::nullopt;
  return read_control(index);
}

std::string controls_json(const std::vector<std::string>& names) {
  json::Object object;
  for (const std::string& name : names) {
    const auto control = find_control(name);
    object.raw(name, control ? control_json(*control) : "null");
  }
  return object.str();
}

}  // namespace commtune
