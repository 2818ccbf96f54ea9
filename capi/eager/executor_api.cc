#include "weir/capi/eager/context.h"

// Executors, as clients see them.

using weir::capi::EagerExecutor;
using weir::capi::HaveAll;
using weir::capi::SetStatus;

TFE_Executor* TFE_NewExecutor(bool is_async, bool enable_streaming_enqueue,
                              int in_flight_nodes_limit) {
  static_cast<void>(enable_streaming_enqueue);
  auto executor = EagerExecutor::Make(is_async, in_flight_nodes_limit);
  if (executor.ok()) return new TFE_Executor{*std::move(executor)};
  weir::capi::LogMisuse("TFE_NewExecutor", executor.status().message());
  return nullptr;
}

void TFE_DeleteExecutor(TFE_Executor* executor) { delete executor; }

bool TFE_ExecutorIsAsync(TFE_Executor* executor) {
  return HaveAll("TFE_ExecutorIsAsync", {executor}) && executor->executor->is_async();
}

void TFE_ExecutorWaitForAllPendingNodes(TFE_Executor* executor, TF_Status* status) {
  if (HaveAll("TFE_ExecutorWaitForAllPendingNodes", {executor}, status))
    SetStatus(status, executor->executor->WaitForAll());
}

void TFE_ExecutorClearError(TFE_Executor* executor) {
  if (HaveAll("TFE_ExecutorClearError", {executor})) executor->executor->ClearError();
}

void TFE_ContextSetExecutorForThread(TFE_Context* ctx, TFE_Executor* executor) {
  if (HaveAll("TFE_ContextSetExecutorForThread", {ctx, executor}))
    ctx->SetThreadExecutor(executor->executor);
}

TFE_Executor* TFE_ContextGetExecutorForThread(TFE_Context* ctx) {
  return HaveAll("TFE_ContextGetExecutorForThread", {ctx}) ? new TFE_Executor{ctx->ThreadExecutor()}
                                                           : nullptr;
}

void TFE_ContextAsyncWait(TFE_Context* ctx, TF_Status* status) {
  if (!HaveAll("TFE_ContextAsyncWait", {ctx}, status)) return;
  absl::Status first;
  for (const auto& executor : ctx->AllExecutors()) {
    first.Update(executor->WaitForAll());
    executor->ClearError();
  }
  SetStatus(status, first);
}
