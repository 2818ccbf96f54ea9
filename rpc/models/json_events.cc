#include "weir/rpc/models/json_events.h"

#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "weir/core/tensor/shape.h"

namespace weir::rpc {

namespace {

using nlohmann::json;

constexpr int kMaxDepth = Shape::kMaxRank + 6;
constexpr size_t kMaxMessage = 300, kMaxShown = 60;

absl::Status ParseError(absl::string_view what) {
  return InvalidArgument("JSON Parse error: ", what.substr(0, kMaxMessage));
}

// The characters of a text, for a parser that does not know NaN and infinities: each of these is
// replaced by an empty string, and remembered until the parser has reported that string.
class CharacterSource {
 public:
  explicit CharacterSource(absl::string_view text) : text_(text) { Look(); }

  bool at_end() const { return quotes_ == 0 && text_.empty(); }
  char character() const { return quotes_ > 0 ? '"' : text_.front(); }
  void Next() {
    if (quotes_ > 0) {
      if (--quotes_ == 0) Look();
      return;
    }
    const char c = text_.front();
    text_.remove_prefix(1);
    if (is_escaped_) {
      is_escaped_ = false;
    } else if (in_string_ && c == '\\') {
      is_escaped_ = true;
    } else if (c == '"') {
      in_string_ = !in_string_;
      if (in_string_) number_.reset();
    }
    if (!in_string_) Look();
  }

  // The number that the latest string stands for, if it stands for one.
  std::optional<double> TakeNumber() { return std::exchange(number_, std::nullopt); }

 private:
  // Begins the replacement of a number at the front of the text.
  void Look() {
    if (text_.empty() || (text_[0] != 'N' && text_[0] != 'I' && text_[0] != '-')) return;
    static constexpr std::pair<absl::string_view, double> kNumbers[] = {
        {"NaN", std::numeric_limits<double>::quiet_NaN()},
        {"Infinity", std::numeric_limits<double>::infinity()},
        {"-Infinity", -std::numeric_limits<double>::infinity()}};
    for (const auto& [name, value] : kNumbers) {
      if (!absl::StartsWith(text_, name)) continue;
      text_.remove_prefix(name.size());
      quotes_ = 2;
      number_ = value;
      return;
    }
  }

  absl::string_view text_;
  int quotes_ = 0;  // that come before the text
  bool in_string_ = false, is_escaped_ = false;
  std::optional<double> number_;
};

// An input iterator over a CharacterSource.
class CharacterIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  explicit CharacterIterator(CharacterSource* source) : source_(source) {}
  char operator*() const { return source_->character(); }
  CharacterIterator& operator++() {
    source_->Next();
    return *this;
  }
  void operator++(int) { source_->Next(); }
  // One of the two is the end, which has no source.
  friend bool operator==(const CharacterIterator& a, const CharacterIterator& b) {
    return a.AtEnd() == b.AtEnd();
  }
  friend bool operator!=(const CharacterIterator& a, const CharacterIterator& b) {
    return !(a == b);
  }

 private:
  bool AtEnd() const { return source_ == nullptr || source_->at_end(); }
  CharacterSource* source_;
};

// The parser's callbacks. An object is held back until it is known not to be {"b64": "..."}.
class Sax final : public json::json_sax_t {
 public:
  Sax(CharacterSource& source, JsonHandler& handler) : source_(source), handler_(handler) {}
  const absl::Status& status() const { return status_; }

  bool null() override { return Pass({}); }
  bool boolean(bool value) override {
    return Pass({.kind = JsonScalar::Kind::kBool, .boolean = value});
  }
  bool number_integer(int64_t value) override {
    return Pass({.kind = JsonScalar::Kind::kInt, .int_value = value});
  }
  bool number_unsigned(uint64_t value) override {
    return Pass({.kind = JsonScalar::Kind::kUint, .uint_value = value});
  }
  bool number_float(double value, const std::string& text) override {
    return Pass({.kind = JsonScalar::Kind::kDouble,
                 .double_value = value,
                 .is_integer = text.find_first_of(".eE") == text.npos});
  }
  bool string(std::string& value) override {
    if (const std::optional<double> number = source_.TakeNumber())
      return Pass({.kind = JsonScalar::Kind::kDouble, .double_value = *number});
    JsonScalar scalar{.kind = JsonScalar::Kind::kString, .text = std::move(value)};
    if (held_ == Held::kKey) {
      held_ = Held::kValue;
      held_value_ = std::move(scalar);
      return true;
    }
    return Pass(std::move(scalar));
  }
  bool binary(json::binary_t&) override { return false; }  // not in texts
  bool start_object(size_t) override {
    if (!Flush() || !Enter()) return false;
    held_ = Held::kBegin;
    return true;
  }
  bool key(std::string& name) override {
    if (source_.TakeNumber()) return Keep(ParseError("a key is not a string"));
    if (held_ == Held::kBegin && name == "b64") {
      held_ = Held::kKey;
      return true;
    }
    return Flush() && Keep(handler_.Key(name));
  }
  bool end_object() override {
    --depth_;
    if (held_ != Held::kValue) return Flush() && Keep(handler_.EndObject());
    held_ = Held::kNothing;
    JsonScalar bytes{.kind = JsonScalar::Kind::kBytes};
    if (!absl::Base64Unescape(held_value_.text, &bytes.text))
      return Keep(InvalidArgument("Unable to base64 decode ", held_value_.ToString()));
    held_value_ = {};
    return Keep(handler_.Scalar(bytes));
  }
  bool start_array(size_t) override { return Flush() && Enter() && Keep(handler_.BeginList()); }
  bool end_array() override {
    --depth_;
    return Keep(handler_.EndList());
  }
  bool parse_error(size_t, const std::string&, const json::exception& error) override {
    return Keep(ParseError(error.what()));
  }

 private:
  enum class Held { kNothing, kBegin, kKey, kValue };

  bool Keep(absl::Status status) {
    status_ = std::move(status);
    return status_.ok();
  }
  bool Pass(JsonScalar scalar) { return Flush() && Keep(handler_.Scalar(scalar)); }
  bool Enter() {
    if (++depth_ <= kMaxDepth) return true;
    return Keep(ParseError(absl::StrCat("more than ", kMaxDepth, " nested lists and objects")));
  }
  // Passes on what was held back.
  bool Flush() {
    const Held held = std::exchange(held_, Held::kNothing);
    if (held == Held::kNothing) return true;
    if (!Keep(handler_.BeginObject())) return false;
    if (held == Held::kBegin) return true;
    if (!Keep(handler_.Key("b64"))) return false;
    return held == Held::kKey || Keep(handler_.Scalar(held_value_));
  }

  CharacterSource& source_;
  JsonHandler& handler_;
  absl::Status status_;
  int depth_ = 0;
  Held held_ = Held::kNothing;
  JsonScalar held_value_;
};

}  // namespace

double JsonScalar::AsDouble() const {
  if (kind == Kind::kInt) return static_cast<double>(int_value);
  return kind == Kind::kUint ? static_cast<double>(uint_value) : double_value;
}

std::string JsonScalar::ToString() const {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return boolean ? "true" : "false";
    case Kind::kInt:
      return absl::StrCat(int_value);
    case Kind::kUint:
      return absl::StrCat(uint_value);
    case Kind::kDouble:
      return absl::StrCat(double_value);
    default:
      return absl::StrCat("\"", absl::Utf8SafeCEscape(text.substr(0, kMaxShown)),
                          text.size() > kMaxShown ? "...\"" : "\"");
  }
}

absl::Status JsonScalar::TypeError(DataType dtype) const {
  const char* const type = is_number()            ? "Number"
                           : kind == Kind::kNull  ? "Null"
                           : kind == Kind::kBool  ? (boolean ? "True" : "False")
                           : kind == Kind::kBytes ? "Object"
                                                  : "String";
  return InvalidArgument("JSON Value: ", ToString(), " Type: ", type,
                         " is not of expected type: ", DataTypeName(dtype));
}

absl::Status ParseJson(absl::string_view text, JsonHandler& handler) {
  if (text.empty()) return ParseError("The document is empty");
  CharacterSource source(text);
  Sax sax(source, handler);
  const bool ok = json::sax_parse(CharacterIterator(&source), CharacterIterator(nullptr), &sax);
  if (!ok && sax.status().ok()) return ParseError("the text is not JSON");
  return sax.status();
}

}  // namespace weir::rpc
