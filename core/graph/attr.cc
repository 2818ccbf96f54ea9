#include "weir/core/graph/attr.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"

namespace weir {

namespace {

// Compares floats by their bits: nodes that differ in the sign of a zero are different nodes.
bool Same(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }
bool Same(const Tensor& a, const Tensor& b) { return IdenticalTensors(a, b); }
template <class T>
bool Same(const T& a, const T& b) {
  return a == b;
}
bool Same(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](float x, float y) { return Same(x, y); });
}
bool Same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), IdenticalTensors);
}

std::string Text(std::monostate) { return "<no value>"; }
std::string Text(const std::string& s) { return absl::StrCat("\"", absl::CEscape(s), "\""); }
std::string Text(int64_t i) { return absl::StrCat(i); }
std::string Text(float f) {
  char buf[32];
  return std::string(buf, std::to_chars(buf, buf + sizeof(buf), f).ptr);
}
std::string Text(bool b) { return b ? "true" : "false"; }
std::string Text(DataType t) { return absl::StrCat("DT_", absl::AsciiStrToUpper(DataTypeName(t))); }
std::string Text(const Shape& s) { return s.ToString(); }
std::string Text(const Tensor& t) { return absl::StrCat("<Tensor: ", t.Description(), ">"); }
std::string Text(const AttrPlaceholder& p) { return absl::StrCat("$", p.name); }
std::string Text(AttrValue::EmptyList) { return "[]"; }
std::string Text(const FunctionRef& f) {
  if (f.attrs == nullptr || f.attrs->empty()) return f.name;
  return absl::StrCat(f.name, "[",
                      absl::StrJoin(*f.attrs, ", ",
                                    [](std::string* out, const auto& attr) {
                                      absl::StrAppend(out, attr.first, "=", attr.second.ToString());
                                    }),
                      "]");
}
template <class T>
std::string Text(const std::vector<T>& list) {
  return absl::StrCat(
      "[", absl::StrJoin(list, ", ", [](std::string* out, const T& item) { *out += Text(item); }),
      "]");
}

template <class T>
struct IsList : std::false_type {};
template <class T>
struct IsList<std::vector<T>> : std::true_type {};

const char* KindName(AttrSpec::Kind kind) {
  switch (kind) {
    case AttrSpec::Kind::kString:
      return "string";
    case AttrSpec::Kind::kInt:
      return "int";
    case AttrSpec::Kind::kFloat:
      return "float";
    case AttrSpec::Kind::kBool:
      return "bool";
    case AttrSpec::Kind::kType:
      return "type";
    case AttrSpec::Kind::kShape:
      return "shape";
    case AttrSpec::Kind::kTensor:
      return "tensor";
    case AttrSpec::Kind::kFunction:
      return "func";
  }
  return "";
}

// Returns the wire name of the kind that the value holds.
std::string KindOf(const AttrValue& value) {
  constexpr const char* kNames[] = {"(none)",      "string",       "int",         "float",
                                    "bool",        "type",         "shape",       "tensor",
                                    "func",        "placeholder",  "list(empty)", "list(string)",
                                    "list(int)",   "list(float)",  "list(bool)",  "list(type)",
                                    "list(shape)", "list(tensor)", "list(func)"};
  static_assert(std::size(kNames) == std::variant_size_v<AttrValue::Value>);
  return kNames[value.value().index()];
}

absl::Status CheckType(const AttrSpec& spec, DataType type) {
  if (IsRef(type)) {
    return InvalidArgument("AttrValue must not have reference type value of ", DataTypeName(type),
                           " for attr '", spec.name, "'");
  }
  if (type != DT_INVALID && !IsKnown(type)) {
    return InvalidArgument("AttrValue has invalid DataType enum: ", static_cast<int>(type),
                           " for attr '", spec.name, "'");
  }
  const DataTypes& allowed = spec.allowed_types;
  if (allowed.empty() || std::find(allowed.begin(), allowed.end(), type) != allowed.end()) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      "Value for attr '", spec.name, "' of ", DataTypeName(type),
      " is not in the list of allowed values: ",
      absl::StrJoin(allowed, ", ", [](std::string* out, DataType t) { *out += DataTypeName(t); }));
}

absl::Status CheckString(const AttrSpec& spec, const std::string& text) {
  const std::vector<std::string>& allowed = spec.allowed_strings;
  if (allowed.empty() || std::find(allowed.begin(), allowed.end(), text) != allowed.end()) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      "Value for attr '", spec.name, "' of ", Text(text), " is not in the list of allowed values: ",
      absl::StrJoin(allowed, ", ",
                    [](std::string* out, const std::string& s) { *out += Text(s); }));
}

// Returns the index in AttrValue::Value of the attribute's alternative. AttrValue::Value has the
// kinds in the same order as AttrSpec::Kind.
size_t IndexOf(const AttrSpec& spec) {
  constexpr size_t kFirst = 1, kFirstList = 11;
  static_assert(std::is_same_v<std::variant_alternative_t<kFirst, AttrValue::Value>, std::string>);
  static_assert(std::is_same_v<std::variant_alternative_t<kFirstList, AttrValue::Value>,
                               std::vector<std::string>>);
  static_assert(std::variant_size_v<AttrValue::Value> ==
                kFirstList + static_cast<size_t>(AttrSpec::Kind::kFunction) + 1);
  return static_cast<size_t>(spec.kind) + (spec.is_list ? kFirstList : kFirst);
}

// Returns the length of the list, or -1 if the value is not a list.
int64_t ListLength(const AttrValue& value) {
  return std::visit(
      []<class T>(const T& v) -> int64_t {
        if constexpr (IsList<T>::value) return static_cast<int64_t>(v.size());
        return std::is_same_v<T, AttrValue::EmptyList> ? 0 : -1;
      },
      value.value());
}

}  // namespace

// GCC does not extend the visibility of a namespace to friends that only a class declares.
WEIR_API bool operator==(const FunctionRef& a, const FunctionRef& b) {
  if (a.name != b.name) return false;
  static const AttrMap* const none = new AttrMap;
  return a.attrs == b.attrs || (a.attrs ? *a.attrs : *none) == (b.attrs ? *b.attrs : *none);
}

AttrValue::AttrValue() = default;
AttrValue::~AttrValue() = default;
AttrValue::AttrValue(const AttrValue& other) = default;
AttrValue::AttrValue(AttrValue&& other) noexcept = default;
AttrValue& AttrValue::operator=(const AttrValue& other) = default;
AttrValue& AttrValue::operator=(AttrValue&& other) noexcept = default;
AttrValue::AttrValue(absl::string_view s) : value_(std::string(s)) {}
AttrValue::AttrValue(const char* s) : value_(std::string(s)) {}
AttrValue::AttrValue(std::string s) : value_(std::move(s)) {}
AttrValue::AttrValue(int i) : value_(static_cast<int64_t>(i)) {}
AttrValue::AttrValue(int64_t i) : value_(i) {}
AttrValue::AttrValue(float f) : value_(f) {}
AttrValue::AttrValue(bool b) : value_(b) {}
AttrValue::AttrValue(DataType t) : value_(t) {}
AttrValue::AttrValue(Shape s) : value_(std::move(s)) {}
AttrValue::AttrValue(Tensor t) : value_(std::move(t)) {}
AttrValue::AttrValue(FunctionRef f) : value_(std::move(f)) {}
AttrValue::AttrValue(AttrPlaceholder p) : value_(std::move(p)) {}
AttrValue::AttrValue(EmptyList e) : value_(e) {}

template <class T>
AttrValue::AttrValue(std::vector<T> list) {
  if (list.empty()) {
    value_ = EmptyList{};
  } else {
    value_ = std::move(list);
  }
}
template AttrValue::AttrValue(std::vector<std::string>);
template AttrValue::AttrValue(std::vector<int64_t>);
template AttrValue::AttrValue(std::vector<float>);
template AttrValue::AttrValue(std::vector<bool>);
template AttrValue::AttrValue(std::vector<DataType>);
template AttrValue::AttrValue(std::vector<Shape>);
template AttrValue::AttrValue(std::vector<Tensor>);
template AttrValue::AttrValue(std::vector<FunctionRef>);

WEIR_API bool operator==(const AttrValue& a, const AttrValue& b) {
  if (a.value_.index() != b.value_.index()) return false;
  return std::visit(
      [&b]<class T>(const T& x) -> bool {
        if constexpr (std::is_same_v<T, std::monostate>)
          return true;
        else
          return Same(x, *b.get_if<T>());
      },
      a.value_);
}

std::string AttrValue::ToString() const {
  return std::visit([](const auto& v) { return Text(v); }, value_);
}

AttrMap::AttrMap() = default;
AttrMap::~AttrMap() = default;
AttrMap::AttrMap(const AttrMap& other) = default;
AttrMap::AttrMap(AttrMap&& other) noexcept = default;
AttrMap& AttrMap::operator=(const AttrMap& other) = default;
AttrMap& AttrMap::operator=(AttrMap&& other) noexcept = default;
AttrMap::AttrMap(std::initializer_list<value_type> attrs) {
  for (const value_type& attr : attrs) insert(attr);
}

WEIR_API bool operator==(const AttrMap& a, const AttrMap& b) {
  return a.attrs_ == b.attrs_ || a.attrs() == b.attrs();
}

const AttrMap::Attrs& AttrMap::None() {
  static const auto* const none = new Attrs;
  return *none;
}

// Returns the attributes for writing; makes them unique first (copy-on-write).
AttrMap::Attrs& AttrMap::own() {
  if (attrs_ == nullptr) {
    attrs_ = std::make_shared<Attrs>();
  } else if (attrs_.use_count() > 1) {
    attrs_ = std::make_shared<Attrs>(*attrs_);
  } else {
    std::atomic_thread_fence(std::memory_order_acquire);  // after the reads of former owners
  }
  return *attrs_;
}

void AttrMap::reserve(size_t size) { own().reserve(size); }

size_t AttrMap::LowerBound(absl::string_view name) const {
  const auto it = std::lower_bound(
      begin(), end(), name,
      [](const value_type& attr, absl::string_view wanted) { return attr.first < wanted; });
  return static_cast<size_t>(it - begin());
}

// Linear search: most names differ in length, which is faster to compare than a binary search.
AttrMap::const_iterator AttrMap::find(absl::string_view name) const {
  return std::find_if(begin(), end(), [&](const value_type& attr) { return attr.first == name; });
}

std::pair<AttrMap::const_iterator, bool> AttrMap::emplace(absl::string_view name, AttrValue value) {
  const size_t at = LowerBound(name);
  if (at < size() && attrs()[at].first == name) return {begin() + at, false};
  Attrs& attrs = own();
  return {attrs.emplace(attrs.begin() + at, std::string(name), std::move(value)), true};
}

std::pair<AttrMap::const_iterator, bool> AttrMap::insert(const value_type& attr) {
  return emplace(attr.first, attr.second);
}

void AttrMap::insert_or_assign(absl::string_view name, AttrValue value) {
  (*this)[name] = std::move(value);
}

AttrValue& AttrMap::operator[](absl::string_view name) {
  const size_t at = LowerBound(name);
  Attrs& attrs = own();
  if (at == attrs.size() || attrs[at].first != name)
    attrs.emplace(attrs.begin() + at, std::string(name), AttrValue());
  return attrs[at].second;
}

std::string AttrSpec::TypeName() const {
  return is_list ? absl::StrCat("list(", KindName(kind), ")") : KindName(kind);
}

absl::Status AttrSpec::Check(const AttrValue& value) const {
  const bool empty_list = is_list && value.is<AttrValue::EmptyList>();
  if (!empty_list && value.value().index() != IndexOf(*this)) {
    return InvalidArgument("AttrValue had value with type '", KindOf(value), "' when '", TypeName(),
                           "' expected for attr '", name, "'");
  }
  if (minimum && is_list && ListLength(value) < *minimum) {
    return InvalidArgument("Length for attr '", name, "' of ", ListLength(value),
                           " must be at least minimum ", *minimum);
  }
  if (const int64_t* i = value.get_if<int64_t>(); minimum && i != nullptr && *i < *minimum) {
    return InvalidArgument("Value for attr '", name, "' of ", *i, " must be at least minimum ",
                           *minimum);
  }
  if (const auto* s = value.get_if<std::string>()) return CheckString(*this, *s);
  if (const auto* t = value.get_if<DataType>()) return CheckType(*this, *t);
  if (const auto* list = value.get_if<std::vector<std::string>>()) {
    for (const std::string& s : *list) WEIR_RETURN_IF_ERROR(CheckString(*this, s));
  }
  if (const auto* list = value.get_if<std::vector<DataType>>()) {
    for (const DataType t : *list) WEIR_RETURN_IF_ERROR(CheckType(*this, t));
  }
  return absl::OkStatus();
}

absl::Status CheckInt32Attr(absl::string_view name, int64_t value) {
  if (value == static_cast<int32_t>(value)) return absl::OkStatus();
  return InvalidArgument("Attr ", name, " has value ", value, " out of range for an int32");
}

bool AnyIsTensor(AttrMap::const_iterator begin, AttrMap::const_iterator end) {
  return std::any_of(begin, end,
                     [](const auto& attr) { return attr.second.template is<Tensor>(); });
}

}  // namespace weir
