#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "weir/capi/session.h"
#include "weir/proto/config.pb.h"
#include "weir/rpc/lib/run_metadata.h"

// TF_SessionRun: the step of a call comes from the session's cache, its feeds share the caller's
// memory, and what was fetched is handed over.

namespace weir::capi {

absl::StatusOr<Tensors> FeedValues(absl::Span<const DataType> types, TF_Tensor* const* values) {
  if (values == nullptr && !types.empty()) return InvalidArgument("the values of inputs are null");
  Tensors feeds;
  feeds.reserve(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    if (values[i] != nullptr && values[i]->dtype != types[i]) {
      return InvalidArgument("Expects arg[", i, "] to be ", DataTypeName(types[i]), " but ",
                             DataTypeName(values[i]->dtype), " is provided");
    }
    if (values[i] != nullptr && types[i] != DT_STRING) {
      feeds.push_back(values[i]->value);
      continue;
    }
    WEIR_ASSIGN_OR_RETURN(feeds.emplace_back(), ValueOf(values[i]));
  }
  return feeds;
}

void ClearFetches(TF_Tensor** outputs, int count) {
  for (int i = 0; outputs != nullptr && i < count; ++i) outputs[i] = nullptr;
}

absl::Status StoreFetches(Tensors values, TF_Tensor** outputs) {
  for (size_t i = 0; i < values.size(); ++i) {
    const absl::StatusOr<TF_Tensor*> tensor = NewTensor(std::move(values[i]));
    if (tensor.ok()) {
      outputs[i] = *tensor;
      continue;
    }
    for (size_t k = 0; k < i; ++k) TF_DeleteTensor(std::exchange(outputs[k], nullptr));
    return tensor.status();
  }
  return absl::OkStatus();
}

absl::Status StepError(const absl::Status& error) {
  if (error.ok()) return error;
  // Weir's messages begin with the op and the node, "Add (node sum): ".
  absl::string_view text = error.message();
  const std::string node = absl::StrCat(" (node ", FailedNode(error), "): ");
  const size_t at = text.find(node);
  if (at != absl::string_view::npos && text.find(' ') == at) text.remove_prefix(at + node.size());
  return absl::Status(error.code(), absl::StrCat(text, rpc::FailedNodeMark(error)));
}

namespace {

// The arguments of TF_SessionRun besides the handles.
struct RunArguments {
  TF_Session* session;
  StepHandles handles;
  TF_Tensor* const* input_values;
  TF_Tensor** output_values;
};

absl::Status CheckFeeds(const Outputs& feeds, const Outputs& fetches) {
  absl::flat_hash_set<Output> fed;
  for (const Output& feed : feeds) {
    if (!fed.insert(feed).second)
      return InvalidArgument("Endpoint \"", feed.name(), "\" fed more than once.");
  }
  for (const Output& fetch : fetches) {
    if (fed.contains(fetch)) return InvalidArgument(fetch.name(), " is both fed and fetched.");
  }
  return absl::OkStatus();
}

// What handles stand for.
struct StepElements {
  Outputs feeds, fetches;
  std::vector<Operation> targets;
};

absl::StatusOr<StepElements> Convert(const StepHandles& handles, const Graph& graph) {
  const auto size = [](const auto& span) { return static_cast<int>(span.size()); };
  StepElements elements;
  WEIR_ASSIGN_OR_RETURN(elements.feeds,
                        OutputsOf(handles.inputs.data(), size(handles.inputs), graph));
  WEIR_ASSIGN_OR_RETURN(elements.fetches,
                        OutputsOf(handles.outputs.data(), size(handles.outputs), graph));
  WEIR_ASSIGN_OR_RETURN(elements.targets,
                        TargetsOf(handles.targets.data(), size(handles.targets), graph));
  return elements;
}

absl::StatusOr<PreparedCall> Prepare(TF_Session* session, const StepHandles& handles) {
  {
    const MutexLock lock(session->graph->mutex);
    WEIR_RETURN_IF_ERROR(session->graph->name_error);
  }
  WEIR_ASSIGN_OR_RETURN(const StepElements elements, Convert(handles, session->session->graph()));
  WEIR_RETURN_IF_ERROR(CheckFeeds(elements.feeds, elements.fetches));
  PreparedCall call;
  for (const Output& feed : elements.feeds) call.feed_types.push_back(feed.dtype());
  WEIR_ASSIGN_OR_RETURN(
      call.step, session->session->Prepare(elements.feeds, elements.fetches, elements.targets));
  return call;
}

// Runs the step by `run`, which fetches.
template <class RunFn>
absl::Status RunStep(const RunArguments& args, RunFn run) {
  if (args.session->is_closed) return absl::CancelledError("Session has been closed.");
  const PreparedCall* call = args.session->steps.Find(args.handles);
  std::optional<PreparedCall> made;
  if (call == nullptr) {
    WEIR_ASSIGN_OR_RETURN(made, Prepare(args.session, args.handles));
    args.session->steps.Insert(args.handles, *made);
    call = &*made;
  }
  if (args.output_values == nullptr && !args.handles.outputs.empty())
    return InvalidArgument("the array for the values of outputs is null");
  WEIR_ASSIGN_OR_RETURN(const Tensors values, FeedValues(call->feed_types, args.input_values));
  Tensors fetched;
  WEIR_RETURN_IF_ERROR(run(call->step, values, &fetched));
  return StoreFetches(std::move(fetched), args.output_values);
}

// Runs a step with options, and reports about it.
absl::Status RunWithReport(const RunArguments& args, const TF_Buffer* run_options,
                           TF_Buffer* run_metadata) {
  if (run_metadata != nullptr && run_metadata->data != nullptr)
    return InvalidArgument("Passing non-empty run_metadata is invalid.");
  proto::RunOptions options;
  if (!ParseMessage(BytesOf(run_options), &options))
    return InvalidArgument("Unparseable RunOptions proto");
  rpc::RunReport report(options);
  Cancellation cancellation;
  WEIR_RETURN_IF_ERROR(RunStep(args, [&](const Step& step, const Tensors& feeds, Tensors* out) {
    return step.Run(feeds, out, report.options(cancellation, std::chrono::milliseconds(0)));
  }));
  if (run_metadata == nullptr) return absl::OkStatus();
  Session& session = *args.session->session;
  proto::RunMetadata metadata;
  report.WriteStatistics(session.devices(), &metadata);
  if (report.wants_graph()) {
    const MutexLock lock(args.session->graph->mutex);
    WEIR_ASSIGN_OR_RETURN(const StepElements elements, Convert(args.handles, session.graph()));
    rpc::WritePartition(session.graph(), elements.feeds, elements.fetches, elements.targets,
                        session.devices()[0]->text(), &metadata);
  }
  SetBuffer(metadata.SerializeAsString(), run_metadata);
  return absl::OkStatus();
}

}  // namespace

}  // namespace weir::capi

void TF_SessionRun(TF_Session* session, const TF_Buffer* run_options, const TF_Output* inputs,
                   TF_Tensor* const* input_values, int ninputs, const TF_Output* outputs,
                   TF_Tensor** output_values, int noutputs, const TF_Operation* const* target_opers,
                   int ntargets, TF_Buffer* run_metadata, TF_Status* status) {
  using weir::capi::ArrayOf;
  weir::capi::ClearFetches(output_values, noutputs);
  if (!weir::capi::HaveAll("TF_SessionRun", {session}, status)) return;
  const auto run = [&]() -> absl::Status {
    weir::capi::RunArguments args{session, {}, input_values, output_values};
    WEIR_ASSIGN_OR_RETURN(args.handles.inputs, ArrayOf(inputs, ninputs, "inputs"));
    WEIR_ASSIGN_OR_RETURN(args.handles.outputs, ArrayOf(outputs, noutputs, "outputs"));
    WEIR_ASSIGN_OR_RETURN(args.handles.targets, ArrayOf(target_opers, ntargets, "targets"));
    if (run_options != nullptr || run_metadata != nullptr)
      return weir::capi::RunWithReport(args, run_options, run_metadata);
    return weir::capi::RunStep(
        args, [](const weir::Step& step, const weir::Tensors& feeds, weir::Tensors* fetched) {
          return step.Run(feeds, fetched);
        });
  };
  weir::capi::SetStatus(status, weir::capi::StepError(run()));
}
