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

void Signature::SetAttr(absl::string_view name, AttrValue value) {
  const auto old = absl::c_find_if(attrs_, [&](const auto& attr) { return attr.first == name; });
  if (old != attrs_.end()) {
    const auto index = static_cast<int>(old - attrs_.begin());
    for (Argument& argument : arguments_) argument.attrs_before -= argument.attrs_before > index;
    attrs_.erase(old);
  }
  attrs_.emplace_back(std::string(name), std::move(value));
}

void Signature::AddInput(DataType type) {
  types_.push_back(type);
  arguments_.push_back({static_cast<int>(types_.size()), false, static_cast<int>(attrs_.size())});
}

absl::Status Signature::AddInputList(absl::Span<const DataType> types) {
  const size_t i = arguments_.size();
  if (i < op_->inputs().size() && !IsListArg(op_->inputs()[i]) && (i == 0 || Determines(i - 1))) {
    return InvalidArgument("Invalid input list definition: argument '", op_->inputs()[i].name,
                           "' of ", op_->name(), " is a single tensor");
  }
  types_.insert(types_.end(), types.begin(), types.end());
  arguments_.push_back({static_cast<int>(types_.size()), true, static_cast<int>(attrs_.size())});
  return absl::OkStatus();
}

bool Signature::Determines(size_t i) const {
  for (size_t k = 0; k <= i; ++k) {
    if (k >= op_->inputs().size()) return false;
    if (!arguments_[k].is_list && IsListArg(op_->inputs()[k])) return false;
  }
  return true;
}

void Signature::SetFromArgument(size_t i, absl::InlinedVector<absl::string_view, 4>* set,
                                AttrMap* attrs) const {
  const ArgSpec& arg = op_->inputs()[i];
  const int begin = i == 0 ? 0 : arguments_[i - 1].end, end = arguments_[i].end;
  const auto set_once = [&](const std::string& name, auto value) {
    if (name.empty() || absl::c_linear_search(*set, name)) return;
    set->push_back(name);
    attrs->insert_or_assign(name, std::move(value));
  };
  if (!arg.type_list_attr.empty())
    return set_once(arg.type_list_attr, DataTypes(types_.begin() + begin, types_.begin() + end));
  set_once(arg.number_attr, static_cast<int64_t>(end - begin));
  if (end > begin) set_once(arg.type_attr, types_[begin]);
}

AttrMap Signature::Attrs() const {
  AttrMap attrs;
  absl::InlinedVector<absl::string_view, 4> set_by_arguments;
  int next = 0;
  const auto set_until = [&](int end) {
    for (; next < end; ++next) attrs.insert_or_assign(attrs_[next].first, attrs_[next].second);
  };
  for (size_t i = 0; i < arguments_.size() && Determines(i); ++i) {
    set_until(arguments_[i].attrs_before);
    SetFromArgument(i, &set_by_arguments, &attrs);
  }
  set_until(static_cast<int>(attrs_.size()));
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
    hash = absl::HashOf(hash, argument.end, argument.is_list, argument.attrs_before);
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
