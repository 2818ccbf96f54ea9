#include "weir/capi/eager/context.h"
#include "weir/capi/eager/handle.h"

// Options and contexts, as clients see them.

using weir::capi::HaveAll;
using weir::capi::LogMisuse;
using weir::capi::SetStatus;

namespace {

bool IsPolicy(absl::string_view function, TFE_ContextDevicePlacementPolicy policy) {
  const auto number = static_cast<int64_t>(policy);
  if (number >= TFE_DEVICE_PLACEMENT_EXPLICIT && number <= TFE_DEVICE_PLACEMENT_SILENT_FOR_INT32)
    return true;
  LogMisuse(function, absl::StrCat("there is no policy ", number));
  return false;
}

}  // namespace

TFE_ContextOptions* TFE_NewContextOptions() {
  auto* const options = new TFE_ContextOptions;
  options->session.options.allow_soft_placement = false;  // as in an empty ConfigProto
  return options;
}

void TFE_DeleteContextOptions(TFE_ContextOptions* options) { delete options; }

void TFE_ContextOptionsSetConfig(TFE_ContextOptions* options, const void* proto, size_t proto_len,
                                 TF_Status* status) {
  if (HaveAll("TFE_ContextOptionsSetConfig", {options}, status))
    TF_SetConfig(&options->session, proto, proto_len, status);
}

void TFE_ContextOptionsSetAsync(TFE_ContextOptions* options, unsigned char enable) {
  if (HaveAll("TFE_ContextOptionsSetAsync", {options})) options->is_async = enable != 0;
}

void TFE_ContextOptionsSetDevicePlacementPolicy(TFE_ContextOptions* options,
                                                TFE_ContextDevicePlacementPolicy policy) {
  constexpr absl::string_view kName = "TFE_ContextOptionsSetDevicePlacementPolicy";
  if (HaveAll(kName, {options}) && IsPolicy(kName, policy)) options->policy = policy;
}

void TFE_ContextOptionsSetTfrt(TFE_ContextOptions* options, bool use_tfrt) {
  if (HaveAll("TFE_ContextOptionsSetTfrt", {options})) options->use_tfrt = use_tfrt;
}

TFE_Context* TFE_NewContext(const TFE_ContextOptions* opts, TF_Status* status) {
  if (!HaveAll("TFE_NewContext", {opts}, status)) return nullptr;
  absl::StatusOr<std::unique_ptr<TFE_Context>> context = TFE_Context::Make(*opts);
  SetStatus(status, context.status());
  return context.ok() ? context->release() : nullptr;
}

void TFE_DeleteContext(TFE_Context* ctx) { delete ctx; }

TF_DeviceList* TFE_ContextListDevices(TFE_Context* ctx, TF_Status* status) {
  return HaveAll("TFE_ContextListDevices", {ctx}, status) ? ctx->ListDevices(status) : nullptr;
}

void TFE_ContextClearCaches(TFE_Context* ctx) {
  if (HaveAll("TFE_ContextClearCaches", {ctx})) ctx->Forget();
}

void TFE_ContextSetThreadLocalDevicePlacementPolicy(TFE_Context* ctx,
                                                    TFE_ContextDevicePlacementPolicy policy) {
  constexpr absl::string_view kName = "TFE_ContextSetThreadLocalDevicePlacementPolicy";
  if (HaveAll(kName, {ctx}) && IsPolicy(kName, policy)) ctx->SetThreadPolicy(policy);
}

TFE_ContextDevicePlacementPolicy TFE_ContextGetDevicePlacementPolicy(TFE_Context* ctx) {
  return HaveAll("TFE_ContextGetDevicePlacementPolicy", {ctx}) ? ctx->ThreadPolicy()
                                                               : TFE_DEVICE_PLACEMENT_EXPLICIT;
}

void TFE_ContextSetServerDef(TFE_Context* ctx, int keep_alive_secs, const void* proto,
                             size_t proto_len, TF_Status* status) {
  static_cast<void>(keep_alive_secs);
  static_cast<void>(proto_len);
  if (!HaveAll("TFE_ContextSetServerDef", {ctx, proto}, status)) return;
  SetStatus(status,
            weir::Unimplemented("TFE_ContextSetServerDef: a context has the devices of its ",
                                "process; servers are in the package libweir-server"));
}

TFE_TensorHandle* TFE_TensorHandleCopyToDevice(TFE_TensorHandle* h, TFE_Context* ctx,
                                               const char* device_name, TF_Status* status) {
  if (!weir::capi::IsHandle("TFE_TensorHandleCopyToDevice", h, status) ||
      !HaveAll("TFE_TensorHandleCopyToDevice", {ctx}, status))
    return nullptr;
  const absl::Status found = ctx->CheckDevice(device_name == nullptr ? "" : device_name);
  SetStatus(status, found);
  return found.ok() ? h->Ref() : nullptr;
}

bool TFE_IsCustomDevice(TFE_Context* ctx, const char* device_name) {
  HaveAll("TFE_IsCustomDevice", {ctx, device_name});
  return false;
}

void TFE_ContextSetLogDevicePlacement(TFE_Context* ctx, unsigned char enable, TF_Status* status) {
  if (!HaveAll("TFE_ContextSetLogDevicePlacement", {ctx}, status)) return;
  ctx->recorder->PrintPlacement(enable != 0);
  SetStatus(status, absl::OkStatus());
}

void TFE_ContextEnableRunMetadata(TFE_Context* ctx) {
  if (HaveAll("TFE_ContextEnableRunMetadata", {ctx})) ctx->recorder->Enable(true);
}

void TFE_ContextDisableRunMetadata(TFE_Context* ctx) {
  if (HaveAll("TFE_ContextDisableRunMetadata", {ctx})) ctx->recorder->Enable(false);
}

void TFE_ContextExportRunMetadata(TFE_Context* ctx, TF_Buffer* buf, TF_Status* status) {
  if (!HaveAll("TFE_ContextExportRunMetadata", {ctx, buf}, status)) return;
  TFE_ContextAsyncWait(ctx, status);
  if (TF_GetCode(status) == TF_OK) weir::capi::SetBuffer(ctx->recorder->Take(), buf);
}

void TFE_ContextStartStep(TFE_Context* ctx) {
  if (HaveAll("TFE_ContextStartStep", {ctx})) ++ctx->open_steps;
}

void TFE_ContextEndStep(TFE_Context* ctx) {
  if (!HaveAll("TFE_ContextEndStep", {ctx}) || --ctx->open_steps >= 0) return;
  ++ctx->open_steps;
  LogMisuse("TFE_ContextEndStep", "no step has been started");
}
