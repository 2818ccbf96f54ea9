#include "weir/capi/eager/op.h"

#include "weir/capi/get_attr.h"
#include "weir/core/graph/scope.h"
#include "weir/core/graph/signature.h"

// Ops under construction, their inputs and devices.

namespace weir::capi {

namespace {

// Returns the full form of a device's name; "" for null.
absl::StatusOr<std::string> DeviceOf(const char* name, absl::string_view op) {
  if (name == nullptr || *name == '\0') return std::string();
  const absl::StatusOr<DeviceName> parsed = DeviceName::Parse(name);
  if (parsed.ok()) return parsed->ToString();
  return InvalidArgument("Malformed device specification '", name, "' in eager op: ", op);
}

// Adds handles, which may be null only if there are none.
absl::Status AddInputs(TFE_Op& op, TFE_TensorHandle* const* inputs, int count) {
  if (count < 0 || count > kMaxNodeArity || (inputs == nullptr && count > 0))
    return InvalidArgument("no array of ", count, " inputs");
  DataTypes types;
  for (int i = 0; i < count; ++i) {
    if (inputs[i] == nullptr) return InvalidArgument("input ", i, " of the list is null");
    types.push_back(inputs[i]->dtype());
  }
  WEIR_RETURN_IF_ERROR(op.signature.AddInputList(types));
  for (int i = 0; i < count; ++i) op.inputs.push_back(inputs[i]->Ref());
  return absl::OkStatus();
}

// Returns the length of an argument, -1 on an error.
int ArgumentLength(const TFE_Op& op, absl::Span<const ArgSpec> args, const char* kind,
                   absl::string_view name, TF_Status* status) {
  const AttrMap attrs = op.signature.AttrsWithDefaults();
  for (const ArgSpec& arg : args) {
    if (arg.name != name) continue;
    const std::string& attr = arg.number_attr.empty() ? arg.type_list_attr : arg.number_attr;
    const bool is_known = attr.empty() || attrs.find(attr) != attrs.end();
    SetStatus(status, is_known ? absl::OkStatus()
                               : NotFound("No attr named '", attr, "' of ", op.name(), " is set"));
    return is_known ? static_cast<int>(ArgLength(arg, attrs)) : -1;
  }
  SetStatus(status, InvalidArgument(kind, " '", name, "' not found"));
  return -1;
}

// The kind that a signature declares; a call of a function has the attributes of TensorFlow's
// runtime.
absl::StatusOr<TF_AttrType> AttrTypeOf(const OpSpec& op, absl::string_view name, bool* is_list) {
  *is_list = false;
  const AttrSpec* const spec = op.FindAttr(name);
  if (spec == nullptr) {
    if (op.is_function() && (name == "executor_type" || name == "config_proto"))
      return TF_ATTR_STRING;
    return InvalidArgument("Attribute '", name, "' does not exist for this operation");
  }
  *is_list = spec->is_list;
  return KindOf(*spec);
}

TF_AttrType GetAttrType(const OpSpec& op, const char* name, unsigned char* is_list,
                        TF_Status* status) {
  bool list = false;
  const absl::StatusOr<TF_AttrType> type = AttrTypeOf(op, name, &list);
  SetStatus(status, type.status());
  if (!type.ok()) return TF_ATTR_INT;
  *is_list = list ? 1 : 0;
  return *type;
}

}  // namespace

}  // namespace weir::capi

using weir::capi::HaveAll;
using weir::capi::SetStatus;

TFE_Op* TFE_NewOp(TFE_Context* ctx, const char* op_or_function_name, TF_Status* status) {
  if (!HaveAll("TFE_NewOp", {ctx, op_or_function_name}, status)) return nullptr;
  const absl::StatusOr<const weir::OpSpec*> op = ctx->FindOp(op_or_function_name);
  SetStatus(status, op.status());
  return op.ok() ? new TFE_Op(ctx, *op) : nullptr;
}

void TFE_DeleteOp(TFE_Op* op) { delete op; }

void TFE_OpReset(TFE_Op* op_to_reset, const char* op_or_function_name, const char* raw_device_name,
                 TF_Status* status) {
  if (!HaveAll("TFE_OpReset", {op_to_reset, op_or_function_name}, status)) return;
  const auto reset = [&]() -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const weir::OpSpec* const op,
                          op_to_reset->context->FindOp(op_or_function_name));
    WEIR_ASSIGN_OR_RETURN(std::string device, weir::capi::DeviceOf(raw_device_name, op->name()));
    op_to_reset->DropInputs();
    op_to_reset->signature = weir::capi::Signature(op);
    op_to_reset->signature.set_device(std::move(device));
    op_to_reset->error = absl::OkStatus();
    return absl::OkStatus();
  };
  SetStatus(status, reset());
}

const char* TFE_OpGetName(const TFE_Op* op, TF_Status* status) {
  if (!HaveAll("TFE_OpGetName", {op}, status)) return nullptr;
  SetStatus(status, absl::OkStatus());
  return op->name().c_str();
}

TFE_Context* TFE_OpGetContext(const TFE_Op* op, TF_Status* status) {
  if (!HaveAll("TFE_OpGetContext", {op}, status)) return nullptr;
  SetStatus(status, absl::OkStatus());
  return op->context;
}

void TFE_OpSetDevice(TFE_Op* op, const char* device_name, TF_Status* status) {
  if (!HaveAll("TFE_OpSetDevice", {op}, status)) return;
  absl::StatusOr<std::string> device = weir::capi::DeviceOf(device_name, op->name());
  SetStatus(status, device.status());
  if (device.ok()) op->signature.set_device(*std::move(device));
}

const char* TFE_OpGetDevice(const TFE_Op* op, TF_Status* status) {
  if (!HaveAll("TFE_OpGetDevice", {op}, status)) return nullptr;
  SetStatus(status, absl::OkStatus());
  return op->signature.device().c_str();
}

void TFE_OpAddInput(TFE_Op* op, TFE_TensorHandle* input, TF_Status* status) {
  if (!HaveAll("TFE_OpAddInput", {op, input}, status)) return;
  op->signature.AddInput(input->dtype());
  op->inputs.push_back(input->Ref());
  SetStatus(status, absl::OkStatus());
}

void TFE_OpAddInputList(TFE_Op* op, TFE_TensorHandle** inputs, int num_inputs, TF_Status* status) {
  if (HaveAll("TFE_OpAddInputList", {op}, status))
    SetStatus(status, weir::capi::AddInputs(*op, inputs, num_inputs));
}

int TFE_OpGetFlatInputCount(const TFE_Op* op, TF_Status* status) {
  if (!HaveAll("TFE_OpGetFlatInputCount", {op}, status)) return -1;
  SetStatus(status, absl::OkStatus());
  return static_cast<int>(op->inputs.size());
}

TFE_TensorHandle* TFE_OpGetFlatInput(const TFE_Op* op, int index, TF_Status* status) {
  if (!HaveAll("TFE_OpGetFlatInput", {op}, status)) return nullptr;
  const int count = static_cast<int>(op->inputs.size());
  const bool is_index = index >= 0 && index < count;
  SetStatus(status, is_index ? absl::OkStatus()
                             : weir::OutOfRange(op->name(), " has ", count, " inputs, not ", index,
                                                " + 1"));
  return is_index ? op->inputs[index] : nullptr;
}

TF_AttrType TFE_OpGetAttrType(TFE_Op* op, const char* attr_name, unsigned char* is_list,
                              TF_Status* status) {
  if (!HaveAll("TFE_OpGetAttrType", {op, attr_name, is_list}, status)) return TF_ATTR_INT;
  return weir::capi::GetAttrType(*op->signature.op(), attr_name, is_list, status);
}

TF_AttrType TFE_OpNameGetAttrType(TFE_Context* ctx, const char* op_or_function_name,
                                  const char* attr_name, unsigned char* is_list,
                                  TF_Status* status) {
  if (!HaveAll("TFE_OpNameGetAttrType", {ctx, op_or_function_name, attr_name, is_list}, status))
    return TF_ATTR_INT;
  const absl::StatusOr<const weir::OpSpec*> op = ctx->FindOp(op_or_function_name);
  SetStatus(status, op.status());
  return op.ok() ? weir::capi::GetAttrType(**op, attr_name, is_list, status) : TF_ATTR_INT;
}

int TFE_OpGetInputLength(TFE_Op* op, const char* input_name, TF_Status* status) {
  if (!HaveAll("TFE_OpGetInputLength", {op, input_name}, status)) return -1;
  return weir::capi::ArgumentLength(*op, op->signature.op()->inputs(), "Input", input_name, status);
}

int TFE_OpGetOutputLength(TFE_Op* op, const char* output_name, TF_Status* status) {
  if (!HaveAll("TFE_OpGetOutputLength", {op, output_name}, status)) return -1;
  return weir::capi::ArgumentLength(*op, op->signature.op()->outputs(), "Output", output_name,
                                    status);
}
