#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "weir/core/graph/attr.h"

namespace weir {

namespace {

using Kind = AttrSpec::Kind;

// Named type sets, as in TensorFlow's op registrations.
const DataTypes* NamedTypes(absl::string_view name) {
  static const DataTypes* const numbers = new DataTypes{
      DT_FLOAT,  DT_DOUBLE,     DT_INT32,  DT_UINT8,  DT_INT16,    DT_INT8,   DT_COMPLEX64,
      DT_INT64,  DT_QINT8,      DT_QUINT8, DT_QINT32, DT_BFLOAT16, DT_QINT16, DT_QUINT16,
      DT_UINT16, DT_COMPLEX128, DT_HALF,   DT_UINT32, DT_UINT64};
  static const DataTypes* const real_numbers =
      new DataTypes{DT_FLOAT, DT_DOUBLE,   DT_INT32,  DT_UINT8, DT_INT16,  DT_INT8,
                    DT_INT64, DT_BFLOAT16, DT_UINT16, DT_HALF,  DT_UINT32, DT_UINT64};
  static const DataTypes* const quantized =
      new DataTypes{DT_QINT8, DT_QUINT8, DT_QINT32, DT_QINT16, DT_QUINT16};
  if (name == "numbertype" || name == "numerictype") return numbers;
  if (name == "realnumbertype" || name == "realnumerictype") return real_numbers;
  if (name == "quantizedtype") return quantized;
  return nullptr;
}

// A left-to-right scanner. Every Consume and Read skips blanks first; a failed one leaves the rest
// of the text unchanged.
class Reader {
 public:
  explicit Reader(absl::string_view text) : rest_(text) {}

  bool AtEnd() {
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    return rest_.empty();
  }
  absl::string_view rest() const { return rest_; }

  bool Consume(absl::string_view token) {
    if (AtEnd() || !absl::StartsWith(rest_, token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  // Reads a word of letters, digits, '_' and the characters of numbers: "float", "-1", "1e-5", "?".
  absl::string_view Word() {
    if (AtEnd()) return {};
    size_t n = 0;
    while (n < rest_.size() &&
           (absl::ascii_isalnum(rest_[n]) || absl::StrContains("_+-.?", rest_.substr(n, 1))))
      ++n;
    const absl::string_view word = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return word;
  }

  bool Quoted(std::string* out) {
    if (AtEnd() || (rest_[0] != '\'' && rest_[0] != '"')) return false;
    const char quote = rest_[0];
    size_t end = 1;
    while (end < rest_.size() && rest_[end] != quote) end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) return false;
    if (!absl::CUnescape(rest_.substr(1, end - 1), out)) return false;
    rest_.remove_prefix(end + 1);
    return true;
  }

 private:
  absl::string_view rest_;
};

class AttrParser {
 public:
  explicit AttrParser(absl::string_view text) : text_(text), in_(text) {}

  absl::StatusOr<AttrSpec> Parse() {
    spec_.name = std::string(in_.Word());
    if (spec_.name.empty() || !in_.Consume(":")) return Error("expected '<name>: <type>'");
    WEIR_RETURN_IF_ERROR(ParseType());
    if (in_.Consume(">=")) {
      int64_t minimum = 0;
      if (!absl::SimpleAtoi(in_.Word(), &minimum)) return Error("expected a number after '>='");
      if (!spec_.is_list && spec_.kind != Kind::kInt) return Error("'>=' is for int and lists");
      spec_.minimum = minimum;
    }
    if (in_.Consume("=")) {
      WEIR_ASSIGN_OR_RETURN(AttrValue value, ParseDefault());
      WEIR_RETURN_IF_ERROR(Annotate(spec_.Check(value), "Default"));
      spec_.default_value = std::move(value);
    }
    if (!in_.AtEnd()) return Error("text left over");
    return std::move(spec_);
  }

 private:
  absl::Status Error(absl::string_view what) const {
    return InvalidArgument("Bad attribute \"", text_, "\" at \"", in_.rest(), "\": ", what);
  }

  absl::Status ParseType() {
    spec_.is_list = in_.Consume("list(");
    if (in_.Consume("{")) {
      WEIR_RETURN_IF_ERROR(ParseAllowed());
    } else {
      WEIR_RETURN_IF_ERROR(ParseKind(in_.Word()));
    }
    if (spec_.is_list && !in_.Consume(")")) return Error("expected ')'");
    return absl::OkStatus();
  }

  absl::Status ParseKind(absl::string_view word) {
    if (const DataTypes* types = NamedTypes(word)) {
      spec_.kind = Kind::kType;
      spec_.allowed_types = *types;
      return absl::OkStatus();
    }
    constexpr std::pair<absl::string_view, Kind> kKinds[] = {
        {"string", Kind::kString}, {"int", Kind::kInt},      {"float", Kind::kFloat},
        {"bool", Kind::kBool},     {"type", Kind::kType},    {"shape", Kind::kShape},
        {"tensor", Kind::kTensor}, {"func", Kind::kFunction}};
    for (const auto& [name, kind] : kKinds) {
      if (word == name) {
        spec_.kind = kind;
        return absl::OkStatus();
      }
    }
    return Error(absl::StrCat("'", word, "' is no attribute type"));
  }

  // Parses the text after '{': types, named type sets, or quoted strings.
  absl::Status ParseAllowed() {
    std::string text;
    do {
      if (in_.Quoted(&text)) {
        spec_.allowed_strings.push_back(text);
        continue;
      }
      const absl::string_view word = in_.Word();
      const DataTypes* types = NamedTypes(word);
      const DataType type = DataTypeFromName(word);
      if (types == nullptr && type == DT_INVALID)
        return Error(absl::StrCat("'", word, "' is no type"));
      if (types != nullptr) {
        spec_.allowed_types.insert(spec_.allowed_types.end(), types->begin(), types->end());
      } else {
        spec_.allowed_types.push_back(type);
      }
    } while (in_.Consume(","));
    if (!in_.Consume("}")) return Error("expected '}'");
    if (!spec_.allowed_strings.empty() && !spec_.allowed_types.empty()) {
      return Error("types and strings mixed");
    }
    spec_.kind = spec_.allowed_strings.empty() ? Kind::kType : Kind::kString;
    return absl::OkStatus();
  }

  absl::StatusOr<AttrValue> ParseDefault() {
    switch (spec_.kind) {
      case Kind::kString:
        return ParseValue<std::string>();
      case Kind::kInt:
        return ParseValue<int64_t>();
      case Kind::kFloat:
        return ParseValue<float>();
      case Kind::kBool:
        return ParseValue<bool>();
      case Kind::kType:
        return ParseValue<DataType>();
      case Kind::kShape:
        return ParseValue<Shape>();
      case Kind::kTensor:
        return ParseValue<Tensor>();
      case Kind::kFunction:
        return ParseValue<FunctionRef>();
    }
    return Error("unknown kind");
  }

  // Parses one value, or a list of values in brackets.
  template <class T>
  absl::StatusOr<AttrValue> ParseValue() {
    if (!spec_.is_list) {
      T value{};
      if (!Read(&value)) return Error("bad default value");
      return AttrValue(std::move(value));
    }
    std::vector<T> values;
    if (!in_.Consume("[")) return Error("expected '['");
    while (!in_.Consume("]")) {
      if (!values.empty() && !in_.Consume(",")) return Error("expected ',' or ']'");
      T value{};
      if (!Read(&value)) return Error("bad default value");
      values.push_back(std::move(value));
    }
    return AttrValue(std::move(values));
  }

  bool Read(std::string* out) { return in_.Quoted(out); }
  bool Read(int64_t* out) { return absl::SimpleAtoi(in_.Word(), out); }
  bool Read(float* out) { return absl::SimpleAtof(in_.Word(), out); }
  bool Read(bool* out) {
    const absl::string_view word = in_.Word();
    *out = word == "true";
    return *out || word == "false";
  }
  bool Read(DataType* out) {
    *out = DataTypeFromName(in_.Word());
    return *out != DT_INVALID;
  }
  bool Read(FunctionRef* out) {
    out->name = std::string(in_.Word());
    return !out->name.empty();
  }

  // Parses "[2,?]", "<unknown>", or TensorFlow's text: {}, { unknown_rank: true }, { dim { size: 2
  // } dim { size: -1 } }.
  bool Read(Shape* out) {
    if (in_.Consume("<unknown>")) {
      *out = Shape::UnknownRank();
      return true;
    }
    if (in_.Consume("{")) return ReadShapeText(out);
    std::string quote;
    if (in_.Quoted(&quote)) return ReadQuotedShape(quote, out);
    return in_.Consume("[") && ReadDims(&in_, out);
  }

  static bool ReadQuotedShape(absl::string_view text, Shape* out) {
    Reader in(text);
    return in.Consume("[") && ReadDims(&in, out) && in.AtEnd();
  }

  // Parses the text after '['.
  static bool ReadDims(Reader* in, Shape* out) {
    while (!in->Consume("]")) {
      if (out->rank() > 0 && !in->Consume(",")) return false;
      const absl::string_view word = in->Word();
      int64_t d = Shape::kUnknown;
      if (word != "?" && (!absl::SimpleAtoi(word, &d) || d < Shape::kUnknown)) return false;
      out->AddDim(d);
    }
    return true;
  }

  // Parses the text after '{'.
  bool ReadShapeText(Shape* out) {
    while (!in_.Consume("}")) {
      const absl::string_view field = in_.Word();
      if (field == "unknown_rank") {
        if (!in_.Consume(":") || in_.Word() != "true") return false;
        *out = Shape::UnknownRank();
      } else {
        int64_t d = 0;
        if (field != "dim" || !in_.Consume("{") || in_.Word() != "size" || !in_.Consume(":") ||
            !absl::SimpleAtoi(in_.Word(), &d) || d < Shape::kUnknown || !in_.Consume("}")) {
          return false;
        }
        out->AddDim(d);
      }
    }
    return true;
  }

  // Parses { dtype: DT_UINT8 tensor_shape { dim { size: 4 } } int_val: 255 int_val: 0 ... }. Only
  // integer tensors are supported.
  bool Read(Tensor* out) {
    DataType dtype = DT_INVALID;
    Shape shape;
    std::vector<int64_t> values;
    if (!in_.Consume("{")) return false;
    while (!in_.Consume("}")) {
      const absl::string_view field = in_.Word();
      if (field == "tensor_shape") {
        in_.Consume(":");
        if (!in_.Consume("{") || !ReadShapeText(&shape)) return false;
        continue;
      }
      if (!in_.Consume(":")) return false;
      if (field == "dtype") {
        if (!Read(&dtype)) return false;
      } else if (field != "int_val" || !Read(&values.emplace_back())) {
        return false;
      }
    }
    if (shape.num_elements() != static_cast<int64_t>(values.size())) return false;
    return DispatchType(dtype, Integers{}, [&]<class T>() {
      *out = Tensor(dtype, shape);
      std::copy(values.begin(), values.end(), out->data<T>());
    });
  }

  absl::string_view text_;
  Reader in_;
  AttrSpec spec_;
};

}  // namespace

absl::StatusOr<AttrSpec> AttrSpec::Parse(absl::string_view text) {
  return AttrParser(text).Parse();
}

}  // namespace weir
