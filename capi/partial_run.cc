#include <cstring>

#include "weir/capi/session.h"

namespace weir::capi {

namespace {

absl::StatusOr<std::string> SetUp(TF_Session* session, const TF_Output* inputs, int num_inputs,
                                  const TF_Output* outputs, int num_outputs,
                                  const TF_Operation* const* targets, int num_targets) {
  if (session->is_closed) return absl::CancelledError("Session has been closed.");
  const Graph& graph = session->session->graph();
  WEIR_ASSIGN_OR_RETURN(const Outputs feeds, OutputsOf(inputs, num_inputs, graph));
  WEIR_ASSIGN_OR_RETURN(const Outputs fetches, OutputsOf(outputs, num_outputs, graph));
  WEIR_ASSIGN_OR_RETURN(const auto operations, TargetsOf(targets, num_targets, graph));
  WEIR_ASSIGN_OR_RETURN(PartialRun run,
                        session->session->StartPartialRun(feeds, fetches, operations));
  const MutexLock lock(session->mutex);
  std::string handle = absl::StrCat("partial_run_", ++session->num_partial_runs);
  session->partial_runs.emplace(handle, std::move(run));
  return handle;
}

absl::Status RunPiece(TF_Session* session, const std::string& handle, const TF_Output* inputs,
                      TF_Tensor* const* input_values, int num_inputs, const TF_Output* outputs,
                      TF_Tensor** output_values, int num_outputs,
                      const TF_Operation* const* targets, int num_targets) {
  PartialRun run;
  {
    const MutexLock lock(session->mutex);
    const auto it = session->partial_runs.find(handle);
    if (it == session->partial_runs.end())
      return InvalidArgument("Must run 'setup' before performing partial runs!");
    run = it->second;
  }
  const Graph& graph = session->session->graph();
  WEIR_ASSIGN_OR_RETURN(const Outputs fed, OutputsOf(inputs, num_inputs, graph));
  WEIR_ASSIGN_OR_RETURN(const Outputs fetches, OutputsOf(outputs, num_outputs, graph));
  WEIR_ASSIGN_OR_RETURN(const auto operations, TargetsOf(targets, num_targets, graph));
  if (output_values == nullptr && !fetches.empty())
    return InvalidArgument("the array for the values of outputs is null");
  DataTypes types;
  for (const Output& feed : fed) types.push_back(feed.dtype());
  WEIR_ASSIGN_OR_RETURN(Tensors values, FeedValues(types, input_values));
  Feeds feeds;
  for (size_t i = 0; i < fed.size(); ++i) feeds.emplace_back(fed[i], std::move(values[i]));
  absl::StatusOr<Tensors> fetched = run.Run(feeds, fetches, operations);
  if (run.is_over()) {
    const MutexLock lock(session->mutex);
    session->partial_runs.erase(handle);
  }
  if (!fetched.ok()) return fetched.status();
  return StoreFetches(*std::move(fetched), output_values);
}

}  // namespace

}  // namespace weir::capi

using weir::capi::HaveAll;
using weir::capi::SetStatus;

void TF_SessionPRunSetup(TF_Session* session, const TF_Output* inputs, int ninputs,
                         const TF_Output* outputs, int noutputs,
                         const TF_Operation* const* target_opers, int ntargets, const char** handle,
                         TF_Status* status) {
  if (handle != nullptr) *handle = nullptr;
  if (!HaveAll("TF_SessionPRunSetup", {session, handle}, status)) return;
  const absl::StatusOr<std::string> made =
      weir::capi::SetUp(session, inputs, ninputs, outputs, noutputs, target_opers, ntargets);
  SetStatus(status, made.status());
  if (!made.ok()) return;
  char* const copy = new char[made->size() + 1];
  std::memcpy(copy, made->c_str(), made->size() + 1);
  *handle = copy;
}

void TF_SessionPRun(TF_Session* session, const char* handle, const TF_Output* inputs,
                    TF_Tensor* const* input_values, int ninputs, const TF_Output* outputs,
                    TF_Tensor** output_values, int noutputs,
                    const TF_Operation* const* target_opers, int ntargets, TF_Status* status) {
  weir::capi::ClearFetches(output_values, noutputs);
  if (!HaveAll("TF_SessionPRun", {session, handle}, status)) return;
  SetStatus(status, weir::capi::StepError(weir::capi::RunPiece(
                        session, handle, inputs, input_values, ninputs, outputs, output_values,
                        noutputs, target_opers, ntargets)));
}

void TF_DeletePRunHandle(const char* handle) { delete[] handle; }
