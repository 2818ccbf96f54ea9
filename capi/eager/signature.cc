#include "weir/capi/eager/signature.h"

#include <algorithm>
#include <bit>

#include "absl/algorithm/container.h"
#include "absl/hash/hash.h"
#include "weir/core/graph/signature.h"

namespace weir::capi {

namespace {

// Hashes a value. Tensors count by type and shape: their elements may be many, and few ops have
// such attributes.
struct HashOf {
  size_t operator()(std::monostate) const { return 0; }
  size_t operator()(AttrValue::EmptyList) const { return 1; }
  size_t operator()(const std::string& value) const { return absl::HashOf(value); }
  size_t operator()(int64_t value) const { return absl::HashOf(value); }
  size_t operator()(float value) const { return absl::HashOf(std::bit_cast<uint32_t>(value)); }
  size_t operator()(bool value) const { return absl::HashOf(value); }
  size_t operator()(DataType value) const { return absl::HashOf(static_cast<int>(value)); }
  size_t operator()(const Shape& value) const { return absl::HashOf(value.rank(), value.dims()); }
  size_t operator()(const Tensor& value) const {
    return absl::HashOf(static_cast<int>(value.dtype()), value.shape().dims());
  }
  size_t operator()(const FunctionRef& value) const { return absl::HashOf(value.name); }
  size_t operator()(const AttrPlaceholder& value) const { return absl::HashOf(value.name); }
  template <class T>
  size_t operator()(const std::vector<T>& list) const {
    size_t hash = list.size();
    for (const auto& value : list) hash = absl::HashOf(hash, (*this)(T(value)));
    return hash;
  }
};

bool SameFloats(absl::Span<const float> a, absl::Span<const float> b) {
  return absl::c_equal(a, b, [](float x, float y) {
    return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
  });
}

// Equality, but a NaN equals itself: otherwise an op with one would be prepared for each execution.
bool SameValue(const AttrValue& a, const AttrValue& b) {
  const auto *x = a.get_if<float>(), *y = b.get_if<float>();
  if (x != nullptr && y != nullptr) return SameFloats({x, 1}, {y, 1});
  const auto *xs = a.get_if<std::vector<float>>(), *ys = b.get_if<std::vector<float>>();
  if (xs != nullptr && ys != nullptr) return SameFloats(*xs, *ys);
  return a == b;
}

}  // namespace

template <class Visit>
void Signature::VisitArgumentAttrs(Visit visit) const {
  int begin = 0;
  const size_t count = std::min(arguments_.size(), op_->inputs().size());
  for (size_t i = 0; i < count; begin = arguments_[i++].end) {
    const ArgSpec& arg = op_->inputs()[i];
    const int end = arguments_[i].end;
    if (!arguments_[i].is_list && IsListArg(arg)) return;
    if (!arg.type_list_attr.empty()) {
      visit(arg.type_list_attr,
            [&] { return AttrValue(DataTypes(types_.begin() + begin, types_.begin() + end)); });
      continue;
    }
    if (!arg.number_attr.empty())
      visit(arg.number_attr, [&] { return AttrValue(static_cast<int64_t>(end - begin)); });
    if (!arg.type_attr.empty() && end > begin)
      visit(arg.type_attr, [&] { return AttrValue(types_[begin]); });
  }
}

void Signature::SetAttr(absl::string_view name, AttrValue value) {
  bool is_set = absl::c_any_of(attrs_, [&](const auto& attr) { return attr.first == name; });
  VisitArgumentAttrs([&](absl::string_view other, const auto&) { is_set |= other == name; });
  if (!is_set) attrs_.emplace_back(std::string(name), std::move(value));
}

void Signature::AddInput(DataType type) {
  types_.push_back(type);
  arguments_.push_back({static_cast<int>(types_.size()), false});
}

bool Signature::IsInPlace() const {
  const size_t next = arguments_.size();
  if (next >= op_->inputs().size()) return false;
  for (size_t i = 0; i < next; ++i) {
    if (!arguments_[i].is_list && IsListArg(op_->inputs()[i])) return false;
  }
  return true;
}

absl::Status Signature::AddInputList(absl::Span<const DataType> types) {
  if (IsInPlace() && !IsListArg(op_->inputs()[arguments_.size()])) {
    return InvalidArgument("Invalid input list definition: argument '",
                           op_->inputs()[arguments_.size()].name, "' of ", op_->name(),
                           " is a single tensor");
  }
  types_.insert(types_.end(), types.begin(), types.end());
  arguments_.push_back({static_cast<int>(types_.size()), true});
  return absl::OkStatus();
}

AttrMap Signature::Attrs() const {
  AttrMap attrs;
  for (const auto& [name, value] : attrs_) attrs.emplace(name, value);
  VisitArgumentAttrs(
      [&](absl::string_view name, const auto& value) { attrs.emplace(name, value()); });
  return attrs;
}

AttrMap Signature::AttrsWithDefaults() const {
  AttrMap attrs = Attrs();
  for (const AttrSpec& spec : op_->attrs()) {
    if (spec.default_value) attrs.emplace(spec.name, *spec.default_value);
  }
  return attrs;
}

size_t Signature::Hash() const {
  size_t hash = absl::HashOf(op_, device_);
  for (const Argument& argument : arguments_)
    hash = absl::HashOf(hash, argument.end, argument.is_list);
  for (const DataType type : types_) hash = absl::HashOf(hash, static_cast<int>(type));
  for (const auto& [name, value] : attrs_)
    hash = absl::HashOf(hash, name, std::visit(HashOf(), value.value()));
  return hash;
}

bool operator==(const Signature& a, const Signature& b) {
  return a.op_ == b.op_ && a.device_ == b.device_ && a.arguments_ == b.arguments_ &&
         a.types_ == b.types_ &&
         absl::c_equal(a.attrs_, b.attrs_, [](const auto& x, const auto& y) {
           return x.first == y.first && SameValue(x.second, y.second);
         });
}

}  // namespace weir::capi
