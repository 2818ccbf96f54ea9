#include <algorithm>
#include <cstring>

#include "weir/capi/objects.h"
#include "weir/core/io/graph_io.h"

// Attributes of operations, as the kinds that TensorFlow's messages name.

namespace weir::capi {

namespace {

// The kind of a value, and of the elements of a list.
struct KindOf {
  TF_AttrType type;
  const char* name;
};
KindOf Kind(const std::string&) { return {TF_ATTR_STRING, "string"}; }
KindOf Kind(int64_t) { return {TF_ATTR_INT, "int"}; }
KindOf Kind(float) { return {TF_ATTR_FLOAT, "float"}; }
KindOf Kind(bool) { return {TF_ATTR_BOOL, "bool"}; }
KindOf Kind(DataType) { return {TF_ATTR_TYPE, "type"}; }
KindOf Kind(const Shape&) { return {TF_ATTR_SHAPE, "shape"}; }
KindOf Kind(const Tensor&) { return {TF_ATTR_TENSOR, "tensor"}; }
KindOf Kind(const FunctionRef&) { return {TF_ATTR_FUNC, "func"}; }
KindOf Kind(const AttrPlaceholder&) { return {TF_ATTR_PLACEHOLDER, "placeholder"}; }
KindOf Kind(std::monostate) { return {TF_ATTR_STRING, "none"}; }

int64_t SizeOf(const std::string& value) { return static_cast<int64_t>(value.size()); }
int64_t SizeOf(const Shape& value) { return value.rank(); }
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

// Returns the kind that the op's signature declares.
TF_AttrType Declared(const OpSpec& op, const char* name) {
  const AttrSpec* const spec = op.FindAttr(name);
  if (spec == nullptr) return TF_ATTR_STRING;
  return spec->kind == AttrSpec::Kind::kFunction ? TF_ATTR_FUNC
                                                 : static_cast<TF_AttrType>(spec->kind);
}

absl::StatusOr<const AttrValue*> Find(TF_Operation* oper, const char* name) {
  const AttrValue* const value = NodeOf(oper)->FindAttr(name);
  if (value != nullptr) return value;
  return InvalidArgument("Operation '", NodeOf(oper)->name(), "' has no attr named '", name, "'.");
}

// Finds an attribute of a kind. An empty list is one of every kind.
template <class T>
absl::StatusOr<T> Get(TF_Operation* oper, const char* name) {
  WEIR_ASSIGN_OR_RETURN(const AttrValue* const value, Find(oper, name));
  if (const T* const found = value->get_if<T>()) return *found;
  if constexpr (!std::is_same_v<T, std::string>) {
    if (value->is<AttrValue::EmptyList>() && NameKind()(T()).find("list(") == 0) return T();
  }
  return InvalidArgument("AttrValue had value with type '", std::visit(NameKind(), value->value()),
                         "' when '", NameKind()(T()), "' expected");
}

// Checks the arguments, and sets the status to the result of `get`.
template <class GetFn>
void GetAttr(absl::string_view function, TF_Operation* oper, const char* name, const void* to,
             TF_Status* status, GetFn get) {
  if (HaveAll(function, {oper, name, to}, status)) SetStatus(status, get());
}

// Copies a value, or the first `max_values` of a list.
template <class T, class To>
void GetValue(absl::string_view function, TF_Operation* oper, const char* name, To* to,
              TF_Status* status) {
  GetAttr(function, oper, name, to, status, [&]() -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const T value, Get<T>(oper, name));
    *to = static_cast<To>(value);
    return absl::OkStatus();
  });
}

template <class T, class To>
void GetList(absl::string_view function, TF_Operation* oper, const char* name, To* to,
             int max_values, TF_Status* status) {
  GetAttr(function, oper, name, to, status, [&]() -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const std::vector<T> list, Get<std::vector<T>>(oper, name));
    const int count = std::min(static_cast<int>(list.size()), max_values);
    for (int i = 0; i < count; ++i) to[i] = static_cast<To>(list[i]);
    return absl::OkStatus();
  });
}

// Returns a copy of a tensor, which the caller may change.
absl::StatusOr<TF_Tensor*> CopyOf(const Tensor& value) {
  return NewTensor(IsPlain(value.dtype()) ? value.DeepCopy() : value);
}

}  // namespace

}  // namespace weir::capi

using weir::capi::Get;
using weir::capi::GetAttr;
using weir::capi::GetList;
using weir::capi::GetValue;
using weir::capi::HaveAll;
using weir::capi::NodeOf;
using weir::capi::SetBuffer;
using weir::capi::SetStatus;

TF_AttrMetadata TF_OperationGetAttrMetadata(TF_Operation* oper, const char* attr_name,
                                            TF_Status* status) {
  TF_AttrMetadata metadata = {};
  GetAttr("TF_OperationGetAttrMetadata", oper, attr_name, &metadata, status, [&]() -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const weir::AttrValue* const value, weir::capi::Find(oper, attr_name));
    const TF_AttrType declared = weir::capi::Declared(NodeOf(oper)->op(), attr_name);
    std::visit(weir::capi::Describe{declared, &metadata}, value->value());
    return absl::OkStatus();
  });
  return metadata;
}

void TF_OperationGetAttrString(TF_Operation* oper, const char* attr_name, void* value,
                               size_t max_length, TF_Status* status) {
  GetAttr("TF_OperationGetAttrString", oper, attr_name, max_length > 0 ? value : oper, status,
          [&]() -> absl::Status {
            WEIR_ASSIGN_OR_RETURN(const std::string text, Get<std::string>(oper, attr_name));
            const size_t count = std::min(text.size(), max_length);
            if (count > 0) std::memcpy(value, text.data(), count);
            return absl::OkStatus();
          });
}

void TF_OperationGetAttrStringList(TF_Operation* oper, const char* attr_name, void** values,
                                   size_t* lengths, int max_values, void* storage,
                                   size_t storage_size, TF_Status* status) {
  if (values != nullptr && lengths != nullptr) {
    std::fill_n(values, std::max(0, max_values), nullptr);
    std::fill_n(lengths, std::max(0, max_values), 0);
  }
  if (!HaveAll("TF_OperationGetAttrStringList", {oper, attr_name}, status)) return;
  const auto get = [&]() -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const auto list, Get<std::vector<std::string>>(oper, attr_name));
    const int count = std::min(static_cast<int>(list.size()), max_values);
    if (count > 0 && (values == nullptr || lengths == nullptr))
      return weir::InvalidArgument("the arrays for ", count, " strings are null");
    char* next = static_cast<char*>(storage);
    for (int i = 0; i < count; ++i) {
      if (list[i].size() > storage_size || (storage == nullptr && !list[i].empty())) {
        return weir::InvalidArgument("Not enough storage to hold the requested list of strings");
      }
      values[i] = next;
      lengths[i] = list[i].size();
      if (!list[i].empty()) std::memcpy(next, list[i].data(), list[i].size());
      next += list[i].size();
      storage_size -= list[i].size();
    }
    return absl::OkStatus();
  };
  SetStatus(status, get());
}

void TF_OperationGetAttrInt(TF_Operation* oper, const char* attr_name, int64_t* value,
                            TF_Status* status) {
  GetValue<int64_t>("TF_OperationGetAttrInt", oper, attr_name, value, status);
}

void TF_OperationGetAttrIntList(TF_Operation* oper, const char* attr_name, int64_t* values,
                                int max_values, TF_Status* status) {
  GetList<int64_t>("TF_OperationGetAttrIntList", oper, attr_name, values, max_values, status);
}

void TF_OperationGetAttrFloat(TF_Operation* oper, const char* attr_name, float* value,
                              TF_Status* status) {
  GetValue<float>("TF_OperationGetAttrFloat", oper, attr_name, value, status);
}

void TF_OperationGetAttrFloatList(TF_Operation* oper, const char* attr_name, float* values,
                                  int max_values, TF_Status* status) {
  GetList<float>("TF_OperationGetAttrFloatList", oper, attr_name, values, max_values, status);
}

void TF_OperationGetAttrBool(TF_Operation* oper, const char* attr_name, unsigned char* value,
                             TF_Status* status) {
  GetValue<bool>("TF_OperationGetAttrBool", oper, attr_name, value, status);
}

void TF_OperationGetAttrBoolList(TF_Operation* oper, const char* attr_name, unsigned char* values,
                                 int max_values, TF_Status* status) {
  GetList<bool>("TF_OperationGetAttrBoolList", oper, attr_name, values, max_values, status);
}

void TF_OperationGetAttrType(TF_Operation* oper, const char* attr_name, TF_DataType* value,
                             TF_Status* status) {
  GetValue<weir::DataType>("TF_OperationGetAttrType", oper, attr_name, value, status);
}

void TF_OperationGetAttrTypeList(TF_Operation* oper, const char* attr_name, TF_DataType* values,
                                 int max_values, TF_Status* status) {
  GetList<weir::DataType>("TF_OperationGetAttrTypeList", oper, attr_name, values, max_values,
                          status);
}

void TF_OperationGetAttrShape(TF_Operation* oper, const char* attr_name, int64_t* value,
                              int num_dims, TF_Status* status) {
  GetAttr("TF_OperationGetAttrShape", oper, attr_name,
          num_dims > 0 ? static_cast<const void*>(value) : attr_name, status,
          [&]() -> absl::Status {
            WEIR_ASSIGN_OR_RETURN(const weir::Shape shape, Get<weir::Shape>(oper, attr_name));
            for (int i = 0; i < std::min(shape.rank(), num_dims); ++i) value[i] = shape.dim(i);
            return absl::OkStatus();
          });
}

void TF_OperationGetAttrShapeList(TF_Operation* oper, const char* attr_name, int64_t** dims,
                                  int* num_dims, int num_shapes, int64_t* storage, int storage_size,
                                  TF_Status* status) {
  if (dims != nullptr && num_dims != nullptr) {
    std::fill_n(dims, std::max(0, num_shapes), nullptr);
    std::fill_n(num_dims, std::max(0, num_shapes), -1);
  }
  if (!HaveAll("TF_OperationGetAttrShapeList", {oper, attr_name}, status)) return;
  const auto get = [&]() -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const auto list, Get<std::vector<weir::Shape>>(oper, attr_name));
    const int count = std::min(static_cast<int>(list.size()), num_shapes);
    if (count > 0 && (dims == nullptr || num_dims == nullptr))
      return weir::InvalidArgument("the arrays for ", count, " shapes are null");
    for (int i = 0; i < count; ++i) {
      const int rank = list[i].rank();
      if (rank > storage_size || (storage == nullptr && rank > 0)) {
        return weir::InvalidArgument("Not enough storage to hold the requested list of shapes");
      }
      num_dims[i] = rank;
      dims[i] = storage;
      if (rank <= 0) continue;
      std::copy(list[i].dims().begin(), list[i].dims().end(), storage);
      storage += rank;
      storage_size -= rank;
    }
    return absl::OkStatus();
  };
  SetStatus(status, get());
}

void TF_OperationGetAttrTensorShapeProto(TF_Operation* oper, const char* attr_name,
                                         TF_Buffer* value, TF_Status* status) {
  GetAttr("TF_OperationGetAttrTensorShapeProto", oper, attr_name, value, status,
          [&]() -> absl::Status {
            WEIR_ASSIGN_OR_RETURN(const weir::Shape shape, Get<weir::Shape>(oper, attr_name));
            SetBuffer(weir::ShapeToBytes(shape), value);
            return absl::OkStatus();
          });
}

void TF_OperationGetAttrTensorShapeProtoList(TF_Operation* oper, const char* attr_name,
                                             TF_Buffer** values, int max_values,
                                             TF_Status* status) {
  if (values != nullptr) std::fill_n(values, std::max(0, max_values), nullptr);
  GetAttr("TF_OperationGetAttrTensorShapeProtoList", oper, attr_name, values, status,
          [&]() -> absl::Status {
            WEIR_ASSIGN_OR_RETURN(const auto list, Get<std::vector<weir::Shape>>(oper, attr_name));
            const int count = std::min(static_cast<int>(list.size()), max_values);
            for (int i = 0; i < count; ++i) {
              const std::string bytes = weir::ShapeToBytes(list[i]);
              values[i] = TF_NewBufferFromString(bytes.data(), bytes.size());
            }
            return absl::OkStatus();
          });
}

void TF_OperationGetAttrTensor(TF_Operation* oper, const char* attr_name, TF_Tensor** value,
                               TF_Status* status) {
  if (value != nullptr) *value = nullptr;
  GetAttr("TF_OperationGetAttrTensor", oper, attr_name, value, status, [&]() -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const weir::Tensor tensor, Get<weir::Tensor>(oper, attr_name));
    WEIR_ASSIGN_OR_RETURN(*value, weir::capi::CopyOf(tensor));
    return absl::OkStatus();
  });
}

void TF_OperationGetAttrTensorList(TF_Operation* oper, const char* attr_name, TF_Tensor** values,
                                   int max_values, TF_Status* status) {
  if (values != nullptr) std::fill_n(values, std::max(0, max_values), nullptr);
  GetAttr("TF_OperationGetAttrTensorList", oper, attr_name, values, status, [&]() -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const auto list, Get<std::vector<weir::Tensor>>(oper, attr_name));
    const int count = std::min(static_cast<int>(list.size()), max_values);
    for (int i = 0; i < count; ++i) {
      WEIR_ASSIGN_OR_RETURN(values[i], weir::capi::CopyOf(list[i]));
    }
    return absl::OkStatus();
  });
}

void TF_OperationGetAttrValueProto(TF_Operation* oper, const char* attr_name,
                                   TF_Buffer* output_attr_value, TF_Status* status) {
  GetAttr("TF_OperationGetAttrValueProto", oper, attr_name, output_attr_value, status,
          [&]() -> absl::Status {
            WEIR_ASSIGN_OR_RETURN(const weir::AttrValue* const value,
                                  weir::capi::Find(oper, attr_name));
            SetBuffer(weir::AttrToBytes(*value), output_attr_value);
            return absl::OkStatus();
          });
}
