#include <algorithm>
#include <cstring>

#include "weir/capi/get_attr.h"
#include "weir/core/io/graph_io.h"

namespace weir::capi {

TF_AttrType KindOf(const AttrSpec& spec) {
  return spec.kind == AttrSpec::Kind::kFunction ? TF_ATTR_FUNC
                                                : static_cast<TF_AttrType>(spec.kind);
}

absl::StatusOr<const AttrValue*> FindAttr(const Node& node, const char* name) {
  const AttrValue* const value = node.FindAttr(name);
  if (value != nullptr) return value;
  return InvalidArgument("Operation '", node.name(), "' has no attr named '", name, "'.");
}

absl::Status StoreStrings(const std::vector<std::string>& list, char** values, size_t* lengths,
                          int max_values, char* storage, size_t storage_size) {
  const int count = std::min(static_cast<int>(list.size()), max_values);
  if (count > 0 && (values == nullptr || lengths == nullptr))
    return InvalidArgument("the arrays for ", count, " strings are null");
  for (int i = 0; i < count; ++i) {
    if (list[i].size() > storage_size || (storage == nullptr && !list[i].empty()))
      return InvalidArgument("Not enough storage to hold the requested list of strings");
    values[i] = storage;
    lengths[i] = list[i].size();
    if (!list[i].empty()) std::memcpy(storage, list[i].data(), list[i].size());
    storage += list[i].size();
    storage_size -= list[i].size();
  }
  return absl::OkStatus();
}

absl::StatusOr<TF_Tensor*> CopyOf(const Tensor& value) {
  return NewTensor(IsPlain(value.dtype()) ? value.DeepCopy() : value);
}

namespace {

template <class T>
absl::StatusOr<T> Get(TF_Operation* oper, const char* name) {
  WEIR_ASSIGN_OR_RETURN(const AttrValue* const value, FindAttr(*NodeOf(oper), name));
  return ValueAs<T>(*value);
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

int TF_OperationGetNumAttrs(TF_Operation* oper) {
  if (!HaveAll("TF_OperationGetNumAttrs", {oper})) return -1;
  return static_cast<int>(NodeOf(oper)->attrs().size());
}

int TF_OperationGetAttrNameLength(TF_Operation* oper, int i) {
  if (!HaveAll("TF_OperationGetAttrNameLength", {oper})) return -1;
  const weir::AttrMap& attrs = NodeOf(oper)->attrs();
  if (i >= 0 && i < static_cast<int>(attrs.size()))
    return static_cast<int>(attrs.begin()[i].first.size());
  weir::capi::LogMisuse("TF_OperationGetAttrNameLength", absl::StrCat("no attribute ", i));
  return -1;
}

void TF_OperationGetAttrName(TF_Operation* oper, int i, char* output, TF_Status* status) {
  if (!HaveAll("TF_OperationGetAttrName", {oper, output}, status)) return;
  const weir::AttrMap& attrs = NodeOf(oper)->attrs();
  if (i < 0 || i >= static_cast<int>(attrs.size())) {
    return SetStatus(status, absl::OutOfRangeError(absl::StrCat("Operation '", NodeOf(oper)->name(),
                                                                "' has no attribute ", i, " among ",
                                                                attrs.size())));
  }
  attrs.begin()[i].first.copy(output, std::string::npos);
  SetStatus(status, absl::OkStatus());
}

TF_AttrMetadata TF_OperationGetAttrMetadata(TF_Operation* oper, const char* attr_name,
                                            TF_Status* status) {
  TF_AttrMetadata metadata = {};
  GetAttr("TF_OperationGetAttrMetadata", oper, attr_name, &metadata, status, [&]() -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const weir::AttrValue* const value,
                          weir::capi::FindAttr(*NodeOf(oper), attr_name));
    const weir::AttrSpec* const spec = NodeOf(oper)->op().FindAttr(attr_name);
    const TF_AttrType declared = spec == nullptr ? TF_ATTR_STRING : weir::capi::KindOf(*spec);
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
    return weir::capi::StoreStrings(list, reinterpret_cast<char**>(values), lengths, max_values,
                                    static_cast<char*>(storage), storage_size);
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
  GetAttr("TF_OperationGetAttrShape", oper, attr_name, attr_name, status, [&]() -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const weir::Shape shape, Get<weir::Shape>(oper, attr_name));
    const int count = std::min(shape.rank(), num_dims);
    if (count > 0 && value == nullptr)
      return weir::InvalidArgument("the array for the dimensions is null");
    for (int i = 0; i < count; ++i) value[i] = shape.dim(i);
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
                                  weir::capi::FindAttr(*NodeOf(oper), attr_name));
            SetBuffer(weir::AttrToBytes(*value), output_attr_value);
            return absl::OkStatus();
          });
}
