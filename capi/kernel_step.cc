#include "tensorflow/c/kernels.h"
#include "weir/capi/kernel_objects.h"
#include "weir/core/io/function_library.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/function.pb.h"
#include "weir/proto/resource_handle.pb.h"
#include "weir/proto/tensor.pb.h"

// What a plug-in's computation reads of its operation, step and device.

namespace weir::capi {

namespace {

TF_StringView ViewOf(absl::string_view text) { return {text.data(), text.size()}; }

absl::StatusOr<std::string> FunctionBytes(const Graph& graph) {
  proto::FunctionDefLibrary library;
  if (const FunctionLibrary* const functions = graph.functions().get()) {
    for (const std::string& name : functions->Names())
      *library.add_function() = *functions->FindDef(name);
  }
  return DeterministicBytes(library);
}

absl::StatusOr<std::string> HandleBytes(const KernelContext& c, int i) {
  if (i < 0 || i >= c.num_inputs()) return OutOfRange("input index out of range");
  const Tensor& handle = c.input(i);
  if (handle.dtype() != DT_RESOURCE || handle.num_elements() != 1)
    return InvalidArgument("input ", i, " is ", handle.Description(), ", not a handle");
  proto::TensorProto proto;
  TensorToProto(handle, &proto);
  return DeterministicBytes(proto.resource_handle_val(0));
}

// Sets the bytes and the status.
void SetBytes(const absl::StatusOr<std::string>& bytes, TF_Buffer* buffer, TF_Status* status) {
  SetStatus(status, bytes.status());
  if (bytes.ok()) SetBuffer(*bytes, buffer);
}

}  // namespace

}  // namespace weir::capi

using weir::capi::HaveAll;
using weir::capi::SetStatus;
using weir::capi::ViewOf;

TF_StringView TF_GetOpKernelName(TF_OpKernelContext* ctx) {
  if (!HaveAll("TF_GetOpKernelName", {ctx})) return {nullptr, 0};
  return ViewOf(ctx->context.node().name());
}

TF_StringView TF_GetOpKernelRequestedInput(TF_OpKernelContext* ctx, size_t index) {
  if (!HaveAll("TF_GetOpKernelRequestedInput", {ctx})) return {nullptr, 0};
  const std::vector<std::string>& inputs = ctx->instance->inputs;
  if (index < inputs.size()) return ViewOf(inputs[index]);
  weir::capi::LogMisuse("TF_GetOpKernelRequestedInput",
                        absl::StrCat("there are ", inputs.size(), " inputs, not ", index, " + 1"));
  return {nullptr, 0};
}

int TF_GetGraphDefVersion(TF_OpKernelContext* ctx) {
  if (!HaveAll("TF_GetGraphDefVersion", {ctx})) return -1;
  return ctx->context.node().graph().versions().producer;
}

int64_t TF_StepId(TF_OpKernelContext* ctx) {
  return HaveAll("TF_StepId", {ctx}) ? ctx->context.step().step_id : -1;
}

int64_t TF_GetStepId(TF_OpKernelContext* ctx) {
  return HaveAll("TF_GetStepId", {ctx}) ? ctx->context.step().step_id : -1;
}

uint64_t TF_GetFrameId(TF_OpKernelContext* ctx) {
  HaveAll("TF_GetFrameId", {ctx});
  return 0;
}

int64_t TF_GetIterId(TF_OpKernelContext* ctx) { return HaveAll("TF_GetIterId", {ctx}) ? 0 : -1; }

int TF_GetDeviceId(TF_OpKernelContext* ctx) {
  if (!HaveAll("TF_GetDeviceId", {ctx})) return -1;
  return ctx->context.device().name().id.value_or(-1);
}

TF_StringView TF_GetDeviceName(TF_OpKernelContext* ctx) {
  if (!HaveAll("TF_GetDeviceName", {ctx})) return {nullptr, 0};
  return ViewOf(ctx->context.device().text());
}

TF_StringView TF_GetResourceMgrDefaultContainerName(TF_OpKernelContext* ctx) {
  if (!HaveAll("TF_GetResourceMgrDefaultContainerName", {ctx})) return {nullptr, 0};
  return ViewOf(weir::ResourceMap::kDefaultContainer);
}

SP_Stream TF_GetStream(TF_OpKernelContext* ctx, TF_Status* status) {
  if (!HaveAll("TF_GetStream", {ctx}, status)) return nullptr;
  SetStatus(status,
            weir::FailedPrecondition("Accessing device stream is not supported for a CPU device."));
  return nullptr;
}

void TF_GetSerializedFunctionDefLibrary(TF_OpKernelContext* ctx,
                                        TF_Buffer* serialized_function_def_library,
                                        TF_Status* status) {
  if (!HaveAll("TF_GetSerializedFunctionDefLibrary", {ctx, serialized_function_def_library},
               status))
    return;
  weir::capi::SetBytes(weir::capi::FunctionBytes(ctx->context.node().graph()),
                       serialized_function_def_library, status);
}

void TF_GetSerializedConfigProto(TF_OpKernelContext* ctx, TF_Buffer* serialized_config_proto,
                                 TF_Status* status) {
  if (!HaveAll("TF_GetSerializedConfigProto", {ctx, serialized_config_proto}, status)) return;
  SetStatus(status, weir::Unimplemented("TF_GetSerializedConfigProto: a session of Weir does not ",
                                        "keep its ConfigProto"));
}

void TF_GetSerializedResourceHandleProto(TF_OpKernelContext* ctx, int i,
                                         TF_Buffer* serialized_resource_handle_proto,
                                         TF_Status* status) {
  if (!HaveAll("TF_GetSerializedResourceHandleProto", {ctx, serialized_resource_handle_proto},
               status))
    return;
  weir::capi::SetBytes(weir::capi::HandleBytes(ctx->context, i), serialized_resource_handle_proto,
                       status);
}

void TF_IncNumDeferredOps(TF_OpKernelContext* context) {
  HaveAll("TF_IncNumDeferredOps", {context});
}

void TF_DecNumDeferredOps(TF_OpKernelContext* context) {
  HaveAll("TF_DecNumDeferredOps", {context});
}
