#include <cstring>
#include <limits>

#include "tensorflow/c/kernels.h"
#include "weir/capi/get_attr.h"
#include "weir/capi/kernel_objects.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/attr_value.pb.h"
#include "weir/proto/node_def.pb.h"

// What the creation of a plug-in's kernel reads: the operation and its attributes.

namespace weir::capi {

namespace {

// Returns an attribute; the error for a list is another one than for a value, as in TensorFlow.
template <class T>
absl::StatusOr<T> Value(const TF_OpKernelConstruction& ctx, const char* name) {
  const AttrValue* const value = ctx.init.node.FindAttr(name);
  if (value == nullptr) return NotFound("No attr named '", name, "' in NodeDef:");
  return ValueAs<T>(*value);
}

template <class T>
absl::StatusOr<std::vector<T>> List(const TF_OpKernelConstruction& ctx, const char* name) {
  WEIR_ASSIGN_OR_RETURN(const AttrValue* const value, FindAttr(ctx.init.node, name));
  if (std::visit(NameKind(), value->value()).find("list(") != 0)
    return InvalidArgument("Attribute '", name, "' is not a list.");
  return ValueAs<std::vector<T>>(*value);
}

// INVALID_ARGUMENT for an int that an int32 cannot hold.
template <class To, class T>
absl::Status CheckRange(const char* name, const T& value) {
  if constexpr (std::is_same_v<To, int32_t>) {
    if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max())
      return InvalidArgument("Attr ", name, " has value ", value, " out of range for an int32");
  }
  return absl::OkStatus();
}

template <class T, class To>
void GetValue(absl::string_view function, TF_OpKernelConstruction* ctx, const char* name, To* to,
              TF_Status* status) {
  if (!HaveAll(function, {ctx, name, to}, status)) return;
  const absl::StatusOr<T> value = Value<T>(*ctx, name);
  if (!value.ok()) return SetStatus(status, value.status());
  const absl::Status fits = CheckRange<To>(name, *value);
  SetStatus(status, fits);
  if (fits.ok()) *to = static_cast<To>(*value);
}

template <class T, class To>
void GetList(absl::string_view function, TF_OpKernelConstruction* ctx, const char* name, To* to,
             int max_values, TF_Status* status) {
  if (!HaveAll(function, {ctx, name, to}, status)) return;
  const auto get = [&]() -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const std::vector<T> list, List<T>(*ctx, name));
    const int count = std::min(static_cast<int>(list.size()), max_values);
    for (int i = 0; i < count; ++i) WEIR_RETURN_IF_ERROR(CheckRange<To>(name, T(list[i])));
    for (int i = 0; i < count; ++i) to[i] = static_cast<To>(list[i]);
    return absl::OkStatus();
  };
  SetStatus(status, get());
}

std::string FunctionBytes(const FunctionRef& function) {
  proto::AttrValue value;
  AttrToProto(AttrValue(function), &value);
  return DeterministicBytes(value.func());
}

}  // namespace

}  // namespace weir::capi

using weir::capi::GetList;
using weir::capi::GetValue;
using weir::capi::HaveAll;
using weir::capi::SetStatus;
using weir::capi::Value;

void TF_OpKernelConstruction_Failure(TF_OpKernelConstruction* ctx, TF_Status* status) {
  if (!HaveAll("TF_OpKernelConstruction_Failure", {ctx}, status)) return;
  ctx->error.Update(status->status);
}

TF_StringView TF_OpKernelConstruction_GetName(TF_OpKernelConstruction* ctx) {
  if (!HaveAll("TF_OpKernelConstruction_GetName", {ctx})) return {nullptr, 0};
  const std::string& name = ctx->init.node.name();
  return {name.data(), name.size()};
}

TF_Buffer* TF_OpKernelConstruction_GetNodeDef(TF_OpKernelConstruction* ctx, TF_Status* status) {
  if (!HaveAll("TF_OpKernelConstruction_GetNodeDef", {ctx}, status)) return nullptr;
  weir::proto::NodeDef def;
  weir::NodeToProto(ctx->init.node, &def);
  const std::string bytes = weir::DeterministicBytes(def);
  SetStatus(status, absl::OkStatus());
  return TF_NewBufferFromString(bytes.data(), bytes.size());
}

bool TF_OpKernelConstruction_HasAttr(TF_OpKernelConstruction* ctx, const char* attr_name,
                                     TF_Status* status) {
  if (!HaveAll("TF_OpKernelConstruction_HasAttr", {ctx, attr_name}, status)) return false;
  SetStatus(status, absl::OkStatus());
  return ctx->init.node.FindAttr(attr_name) != nullptr;
}

void TF_OpKernelConstruction_GetAttrSize(TF_OpKernelConstruction* ctx, const char* attr_name,
                                         int32_t* list_size, int32_t* total_size,
                                         TF_Status* status) {
  if (list_size != nullptr) *list_size = -1;
  if (total_size != nullptr) *total_size = -1;
  if (!HaveAll("TF_OpKernelConstruction_GetAttrSize", {ctx, attr_name, list_size, total_size},
               status))
    return;
  const auto value = weir::capi::FindAttr(ctx->init.node, attr_name);
  SetStatus(status, value.status());
  if (!value.ok()) return;
  TF_AttrMetadata metadata = {};
  std::visit(weir::capi::Describe{TF_ATTR_STRING, &metadata}, (*value)->value());
  *list_size = static_cast<int32_t>(metadata.list_size);
  *total_size = static_cast<int32_t>(metadata.total_size);
}

void TF_OpKernelConstruction_GetAttrType(TF_OpKernelConstruction* ctx, const char* attr_name,
                                         TF_DataType* val, TF_Status* status) {
  GetValue<weir::DataType>("TF_OpKernelConstruction_GetAttrType", ctx, attr_name, val, status);
}

void TF_OpKernelConstruction_GetAttrInt32(TF_OpKernelConstruction* ctx, const char* attr_name,
                                          int32_t* val, TF_Status* status) {
  GetValue<int64_t>("TF_OpKernelConstruction_GetAttrInt32", ctx, attr_name, val, status);
}

void TF_OpKernelConstruction_GetAttrInt64(TF_OpKernelConstruction* ctx, const char* attr_name,
                                          int64_t* val, TF_Status* status) {
  GetValue<int64_t>("TF_OpKernelConstruction_GetAttrInt64", ctx, attr_name, val, status);
}

void TF_OpKernelConstruction_GetAttrFloat(TF_OpKernelConstruction* ctx, const char* attr_name,
                                          float* val, TF_Status* status) {
  GetValue<float>("TF_OpKernelConstruction_GetAttrFloat", ctx, attr_name, val, status);
}

void TF_OpKernelConstruction_GetAttrBool(TF_OpKernelConstruction* ctx, const char* attr_name,
                                         TF_Bool* val, TF_Status* status) {
  GetValue<bool>("TF_OpKernelConstruction_GetAttrBool", ctx, attr_name, val, status);
}

void TF_OpKernelConstruction_GetAttrString(TF_OpKernelConstruction* ctx, const char* attr_name,
                                           char* val, size_t max_length, TF_Status* status) {
  if (!HaveAll("TF_OpKernelConstruction_GetAttrString", {ctx, attr_name}, status)) return;
  const auto text = Value<std::string>(*ctx, attr_name);
  if (!text.ok()) return SetStatus(status, text.status());
  const size_t count = std::min(text->size(), max_length);
  if (count > 0 && val == nullptr)
    return SetStatus(status, weir::InvalidArgument("the memory for ", count, " bytes is null"));
  if (count > 0) std::memcpy(val, text->data(), count);
  SetStatus(status, absl::OkStatus());
}

void TF_OpKernelConstruction_GetAttrTensor(TF_OpKernelConstruction* ctx, const char* attr_name,
                                           TF_Tensor** val, TF_Status* status) {
  if (val != nullptr) *val = nullptr;
  if (!HaveAll("TF_OpKernelConstruction_GetAttrTensor", {ctx, attr_name, val}, status)) return;
  const auto get = [&]() -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const weir::Tensor tensor, Value<weir::Tensor>(*ctx, attr_name));
    WEIR_ASSIGN_OR_RETURN(*val, weir::capi::CopyOf(tensor));
    return absl::OkStatus();
  };
  SetStatus(status, get());
}

void TF_OpKernelConstruction_GetAttrTypeList(TF_OpKernelConstruction* ctx, const char* attr_name,
                                             TF_DataType* vals, int max_vals, TF_Status* status) {
  GetList<weir::DataType>("TF_OpKernelConstruction_GetAttrTypeList", ctx, attr_name, vals, max_vals,
                          status);
}

void TF_OpKernelConstruction_GetAttrInt32List(TF_OpKernelConstruction* ctx, const char* attr_name,
                                              int32_t* vals, int max_vals, TF_Status* status) {
  GetList<int64_t>("TF_OpKernelConstruction_GetAttrInt32List", ctx, attr_name, vals, max_vals,
                   status);
}

void TF_OpKernelConstruction_GetAttrInt64List(TF_OpKernelConstruction* ctx, const char* attr_name,
                                              int64_t* vals, int max_vals, TF_Status* status) {
  GetList<int64_t>("TF_OpKernelConstruction_GetAttrInt64List", ctx, attr_name, vals, max_vals,
                   status);
}

void TF_OpKernelConstruction_GetAttrFloatList(TF_OpKernelConstruction* ctx, const char* attr_name,
                                              float* vals, int max_vals, TF_Status* status) {
  GetList<float>("TF_OpKernelConstruction_GetAttrFloatList", ctx, attr_name, vals, max_vals,
                 status);
}

void TF_OpKernelConstruction_GetAttrBoolList(TF_OpKernelConstruction* ctx, const char* attr_name,
                                             TF_Bool* vals, int max_vals, TF_Status* status) {
  GetList<bool>("TF_OpKernelConstruction_GetAttrBoolList", ctx, attr_name, vals, max_vals, status);
}

void TF_OpKernelConstruction_GetAttrStringList(TF_OpKernelConstruction* ctx, const char* attr_name,
                                               char** values, size_t* lengths, int max_values,
                                               void* storage, size_t storage_size,
                                               TF_Status* status) {
  if (!HaveAll("TF_OpKernelConstruction_GetAttrStringList", {ctx, attr_name}, status)) return;
  const auto get = [&]() -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const auto list, Value<std::vector<std::string>>(*ctx, attr_name));
    return weir::capi::StoreStrings(list, values, lengths, max_values, static_cast<char*>(storage),
                                    storage_size);
  };
  SetStatus(status, get());
}

void TF_OpKernelConstruction_GetAttrTensorList(TF_OpKernelConstruction* ctx, const char* attr_name,
                                               TF_Tensor** vals, int max_values,
                                               TF_Status* status) {
  if (vals != nullptr) std::fill_n(vals, std::max(0, max_values), nullptr);
  if (!HaveAll("TF_OpKernelConstruction_GetAttrTensorList", {ctx, attr_name, vals}, status)) return;
  const auto get = [&]() -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const auto list, Value<std::vector<weir::Tensor>>(*ctx, attr_name));
    const int count = std::min(static_cast<int>(list.size()), max_values);
    for (int i = 0; i < count; ++i) {
      WEIR_ASSIGN_OR_RETURN(vals[i], weir::capi::CopyOf(list[i]));
    }
    return absl::OkStatus();
  };
  SetStatus(status, get());
}

TF_Buffer* TF_OpKernelConstruction_GetAttrFunction(TF_OpKernelConstruction* ctx,
                                                   const char* attr_name, TF_Status* status) {
  if (!HaveAll("TF_OpKernelConstruction_GetAttrFunction", {ctx, attr_name}, status)) return nullptr;
  const auto function = Value<weir::FunctionRef>(*ctx, attr_name);
  SetStatus(status, function.status());
  if (!function.ok()) return nullptr;
  const std::string bytes = weir::capi::FunctionBytes(*function);
  return TF_NewBufferFromString(bytes.data(), bytes.size());
}
