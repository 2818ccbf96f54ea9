#include "weir/c_api.h"
#include "weir/capi/session.h"
#include "weir/session/runtime/chrome_trace.h"

// Traced steps.

namespace weir::capi {

namespace {

// The step to run.
struct Request {
  Outputs feeds, fetches;
  std::vector<Operation> targets;
};

absl::StatusOr<std::string> RunTraced(TF_Session* session, const Request& request,
                                      TF_Tensor* const* input_values, TF_Tensor** output_values) {
  if (session->is_closed) return absl::CancelledError("Session has been closed.");
  if (output_values == nullptr && !request.fetches.empty())
    return InvalidArgument("the array for the values of outputs is null");
  DataTypes types;
  for (const Output& feed : request.feeds) types.push_back(feed.dtype());
  WEIR_ASSIGN_OR_RETURN(const Tensors values, FeedValues(types, input_values));
  WEIR_ASSIGN_OR_RETURN(const Step step,
                        session->session->Prepare(request.feeds, request.fetches, request.targets));
  std::vector<NodeTrace> trace;
  Tensors fetched;
  WEIR_RETURN_IF_ERROR(step.Run(values, &fetched, {.trace = &trace}));
  WEIR_RETURN_IF_ERROR(StoreFetches(fetched, output_values));
  const MutexLock lock(session->graph->mutex);
  return ChromeTrace(trace, session->session->graph());
}

}  // namespace

}  // namespace weir::capi

void weir_session_run_traced(TF_Session* session, const TF_Output* inputs,
                             TF_Tensor* const* input_values, int num_inputs,
                             const TF_Output* outputs, TF_Tensor** output_values, int num_outputs,
                             const TF_Operation* const* targets, int num_targets,
                             TF_Buffer* chrome_trace, TF_Status* status) {
  using weir::capi::OutputsOf;
  if (!weir::capi::HaveAll("weir_session_run_traced", {session, chrome_trace}, status)) return;
  for (int i = 0; output_values != nullptr && i < num_outputs; ++i) output_values[i] = nullptr;
  const auto run = [&]() -> absl::StatusOr<std::string> {
    const weir::Graph& graph = session->session->graph();
    weir::capi::Request request;
    WEIR_ASSIGN_OR_RETURN(request.feeds, OutputsOf(inputs, num_inputs, graph));
    WEIR_ASSIGN_OR_RETURN(request.fetches, OutputsOf(outputs, num_outputs, graph));
    WEIR_ASSIGN_OR_RETURN(request.targets, weir::capi::TargetsOf(targets, num_targets, graph));
    return weir::capi::RunTraced(session, request, input_values, output_values);
  };
  const auto trace = run();
  if (trace.ok()) weir::capi::SetBuffer(*trace, chrome_trace);
  weir::capi::SetStatus(status, weir::capi::StepError(trace.status()));
}
