#include "weir/capi/attr_values.h"
#include "weir/capi/eager/op.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/attr_value.pb.h"

// Attributes of ops. A mistake that has no status stays with the op, whose execution returns it.

namespace weir::capi {

namespace {

void SetAttr(absl::string_view function, TFE_Op* op, const char* name,
             absl::StatusOr<AttrValue> value) {
  if (!HaveAll(function, {op, name})) return;
  if (value.ok()) {
    op->signature.SetAttr(name, *std::move(value));
  } else if (op->error.ok()) {
    op->error = Annotate(value.status(), absl::StrCat("attribute '", name, "' of ", op->name()));
  }
}

// Sets an attribute with a status, where an error is reported at once.
void SetChecked(absl::string_view function, TFE_Op* op, const char* name,
                absl::StatusOr<AttrValue> value, TF_Status* status) {
  if (!HaveAll(function, {op, name}, status)) return;
  SetStatus(status, value.status());
  if (value.ok()) op->signature.SetAttr(name, *std::move(value));
}

FunctionRef FunctionOf(const TFE_Op& op) {
  return {op.name(), std::make_shared<AttrMap>(op.signature.Attrs())};
}

// Converts a shape; the error for too many dimensions is TensorFlow's.
absl::StatusOr<Shape> AttrShape(const char* attr, const int64_t* dims, int num_dims) {
  if (num_dims <= Shape::kMaxRank) return ShapeOf(dims, num_dims);
  return InvalidArgument("Value specified for `", attr == nullptr ? "" : attr, "` has ", num_dims,
                         " dimensions which is over the limit of ", Shape::kMaxRank, ".");
}

}  // namespace

}  // namespace weir::capi

using weir::AttrValue;
using weir::capi::BytesAt;
using weir::capi::HaveAll;
using weir::capi::ListOf;
using weir::capi::SetAttr;
using weir::capi::SetChecked;
using weir::capi::SetStatus;

void TFE_OpSetAttrString(TFE_Op* op, const char* attr_name, const void* value, size_t length) {
  SetAttr("TFE_OpSetAttrString", op, attr_name, BytesAt(value, length));
}

void TFE_OpSetAttrInt(TFE_Op* op, const char* attr_name, int64_t value) {
  SetAttr("TFE_OpSetAttrInt", op, attr_name, AttrValue(value));
}

void TFE_OpSetAttrFloat(TFE_Op* op, const char* attr_name, float value) {
  SetAttr("TFE_OpSetAttrFloat", op, attr_name, AttrValue(value));
}

void TFE_OpSetAttrBool(TFE_Op* op, const char* attr_name, unsigned char value) {
  SetAttr("TFE_OpSetAttrBool", op, attr_name, AttrValue(value != 0));
}

void TFE_OpSetAttrType(TFE_Op* op, const char* attr_name, TF_DataType value) {
  SetAttr("TFE_OpSetAttrType", op, attr_name, weir::capi::TypeOf(value));
}

void TFE_OpSetAttrShape(TFE_Op* op, const char* attr_name, const int64_t* dims, const int num_dims,
                        TF_Status* out_status) {
  SetChecked("TFE_OpSetAttrShape", op, attr_name, weir::capi::AttrShape(attr_name, dims, num_dims),
             out_status);
}

void TFE_OpSetAttrTensor(TFE_Op* op, const char* attr_name, TF_Tensor* tensor, TF_Status* status) {
  SetChecked("TFE_OpSetAttrTensor", op, attr_name, weir::capi::CopyOf(tensor), status);
}

void TFE_OpSetAttrFunction(TFE_Op* op, const char* attr_name, const TFE_Op* value) {
  if (HaveAll("TFE_OpSetAttrFunction", {value}))
    SetAttr("TFE_OpSetAttrFunction", op, attr_name, AttrValue(weir::capi::FunctionOf(*value)));
}

void TFE_OpSetAttrFunctionName(TFE_Op* op, const char* attr_name, const char* data, size_t length) {
  const auto name = BytesAt(data, length);
  SetAttr("TFE_OpSetAttrFunctionName", op, attr_name,
          name.ok() ? absl::StatusOr<AttrValue>(weir::FunctionRef{*name, nullptr}) : name.status());
}

void TFE_OpSetAttrStringList(TFE_Op* op, const char* attr_name, const void* const* values,
                             const size_t* lengths, int num_values) {
  if (num_values > 0 && !HaveAll("TFE_OpSetAttrStringList", {lengths})) return;
  SetAttr("TFE_OpSetAttrStringList", op, attr_name,
          ListOf<std::string>(values, num_values,
                              [&](int i) { return BytesAt(values[i], lengths[i]); }));
}

void TFE_OpSetAttrIntList(TFE_Op* op, const char* attr_name, const int64_t* values,
                          int num_values) {
  SetAttr("TFE_OpSetAttrIntList", op, attr_name,
          ListOf<int64_t>(values, num_values, [&](int i) { return values[i]; }));
}

void TFE_OpSetAttrFloatList(TFE_Op* op, const char* attr_name, const float* values,
                            int num_values) {
  SetAttr("TFE_OpSetAttrFloatList", op, attr_name,
          ListOf<float>(values, num_values, [&](int i) { return values[i]; }));
}

void TFE_OpSetAttrBoolList(TFE_Op* op, const char* attr_name, const unsigned char* values,
                           int num_values) {
  SetAttr("TFE_OpSetAttrBoolList", op, attr_name,
          ListOf<bool>(values, num_values, [&](int i) { return values[i] != 0; }));
}

void TFE_OpSetAttrTypeList(TFE_Op* op, const char* attr_name, const TF_DataType* values,
                           int num_values) {
  SetAttr("TFE_OpSetAttrTypeList", op, attr_name,
          ListOf<weir::DataType>(values, num_values,
                                 [&](int i) { return weir::capi::TypeOf(values[i]); }));
}

void TFE_OpSetAttrShapeList(TFE_Op* op, const char* attr_name, const int64_t** dims,
                            const int* num_dims, int num_values, TF_Status* out_status) {
  if (num_values > 0 && !HaveAll("TFE_OpSetAttrShapeList", {num_dims}, out_status)) return;
  SetChecked("TFE_OpSetAttrShapeList", op, attr_name,
             ListOf<weir::Shape>(
                 dims, num_values,
                 [&](int i) { return weir::capi::AttrShape(attr_name, dims[i], num_dims[i]); }),
             out_status);
}

void TFE_OpSetAttrFunctionList(TFE_Op* op, const char* attr_name, const TFE_Op** value,
                               int num_values) {
  SetAttr(
      "TFE_OpSetAttrFunctionList", op, attr_name,
      ListOf<weir::FunctionRef>(value, num_values, [&](int i) -> absl::StatusOr<weir::FunctionRef> {
        if (value[i] == nullptr) return weir::InvalidArgument("op ", i, " is null");
        return weir::capi::FunctionOf(*value[i]);
      }));
}

void TFE_OpSetAttrValueProto(const TFE_Op* op, const char* attr_name, const void* proto,
                             size_t proto_len, TF_Status* status) {
  const auto value = [&]() -> absl::StatusOr<AttrValue> {
    WEIR_ASSIGN_OR_RETURN(const std::string bytes, BytesAt(proto, proto_len));
    weir::proto::AttrValue message;
    if (!message.ParseFromString(bytes))
      return weir::InvalidArgument("Unparseable AttrValue proto");
    return weir::AttrFromProto(message);
  };
  SetChecked("TFE_OpSetAttrValueProto", const_cast<TFE_Op*>(op), attr_name, value(), status);
}

const TFE_OpAttrs* TFE_OpGetAttrs(const TFE_Op* op) {
  return HaveAll("TFE_OpGetAttrs", {op}) ? &op->attrs : nullptr;
}

void TFE_OpAddAttrs(TFE_Op* op, const TFE_OpAttrs* attrs) {
  if (!HaveAll("TFE_OpAddAttrs", {op, attrs})) return;
  for (const auto& [name, value] : attrs->op->signature.Attrs()) op->signature.SetAttr(name, value);
}

void TFE_OpAttrsSerialize(const TFE_OpAttrs* attrs, TF_Buffer* buf, TF_Status* status) {
  if (!HaveAll("TFE_OpAttrsSerialize", {attrs, buf}, status)) return;
  weir::proto::NameAttrList list;
  list.set_name(attrs->op->name());
  for (const auto& [name, value] : attrs->op->signature.AttrsWithDefaults())
    weir::AttrToProto(value, &(*list.mutable_attr())[name]);
  weir::capi::SetBuffer(weir::DeterministicBytes(list), buf);
  SetStatus(status, absl::OkStatus());
}
