#ifndef WEIR_CAPI_GET_ATTR_H_
#define WEIR_CAPI_GET_ATTR_H_

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "weir/capi/objects.h"

// Attributes of operations, as the kinds that TensorFlow's messages name. For operations of a graph
// and for kernels.
namespace weir::capi {

// The kind of a value, and of the elements of a list.
struct KindOf {
  TF_AttrType type;
  const char* name;
};
inline KindOf Kind(const std::string&) { return {TF_ATTR_STRING, "string"}; }
inline KindOf Kind(int64_t) { return {TF_ATTR_INT, "int"}; }
inline KindOf Kind(float) { return {TF_ATTR_FLOAT, "float"}; }
inline KindOf Kind(bool) { return {TF_ATTR_BOOL, "bool"}; }
inline KindOf Kind(DataType) { return {TF_ATTR_TYPE, "type"}; }
inline KindOf Kind(const Shape&) { return {TF_ATTR_SHAPE, "shape"}; }
inline KindOf Kind(const Tensor&) { return {TF_ATTR_TENSOR, "tensor"}; }
inline KindOf Kind(const FunctionRef&) { return {TF_ATTR_FUNC, "func"}; }
inline KindOf Kind(const AttrPlaceholder&) { return {TF_ATTR_PLACEHOLDER, "placeholder"}; }
inline KindOf Kind(std::monostate) { return {TF_ATTR_STRING, "none"}; }

inline int64_t SizeOf(const std::string& value) { return static_cast<int64_t>(value.size()); }
inline int64_t SizeOf(const Shape& value) { return value.rank(); }
template <class T>
int64_t SizeOf(const T&) {
  return -1;
}

// Sets the metadata of an attribute's value.
struct Describe {
  TF_AttrType declared;  // of an empty list
  TF_AttrMetadata* metadata;

  template <class T>
  void operator()(const T& value) const {
    *metadata = {0, -1, Kind(value).type, SizeOf(value)};
  }
  template <class T>
  void operator()(const std::vector<T>& list) const {
    int64_t total = SizeOf(T()) < 0 ? -1 : 0;
    for (const auto& value : list) total += total < 0 ? 0 : std::max<int64_t>(0, SizeOf(T(value)));
    *metadata = {1, static_cast<int64_t>(list.size()), Kind(T()).type, list.empty() ? -1 : total};
  }
  void operator()(AttrValue::EmptyList) const { *metadata = {1, 0, declared, -1}; }
};

struct NameKind {
  template <class T>
  std::string operator()(const T& value) const {
    return Kind(value).name;
  }
  template <class T>
  std::string operator()(const std::vector<T>&) const {
    return absl::StrCat("list(", Kind(T()).name, ")");
  }
  std::string operator()(AttrValue::EmptyList) const { return "list(none)"; }
};

// Returns the kind of values that a signature declares.
TF_AttrType KindOf(const AttrSpec& spec);

// Returns an attribute; INVALID_ARGUMENT if there is none.
absl::StatusOr<const AttrValue*> FindAttr(const Node& node, const char* name);

// Returns a value of a kind. An empty list is one of every kind.
template <class T>
absl::StatusOr<T> ValueAs(const AttrValue& value) {
  if (const T* const found = value.get_if<T>()) return *found;
  if constexpr (!std::is_same_v<T, std::string>) {
    if (value.is<AttrValue::EmptyList>() && NameKind()(T()).find("list(") == 0) return T();
  }
  return InvalidArgument("AttrValue had value with type '", std::visit(NameKind(), value.value()),
                         "' when '", NameKind()(T()), "' expected");
}

// Writes strings one after the other into the storage. INVALID_ARGUMENT if it is too small.
absl::Status StoreStrings(const std::vector<std::string>& list, char** values, size_t* lengths,
                          int max_values, char* storage, size_t storage_size);

// Returns a copy of a tensor, which the caller may change.
absl::StatusOr<TF_Tensor*> CopyOf(const Tensor& value);

}  // namespace weir::capi

#endif  // WEIR_CAPI_GET_ATTR_H_
