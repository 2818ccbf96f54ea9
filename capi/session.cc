#include "weir/capi/session.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "weir/proto/config.pb.h"
#include "weir/rpc/lib/run_metadata.h"

// Sessions and their runs.

absl::Status TF_Graph::Change(const std::function<absl::Status(weir::Graph&)>& change) {
  const weir::MutexLock lock(mutex);
  const std::vector<TF_Session*> users(sessions.begin(), sessions.end());
  // The steps of every session prepare from the graph: each one waits while it changes.
  const auto add = [&]() -> absl::Status {
    const absl::Status status = change(*graph);
    const absl::Status left = graph->TakeStatus();
    return status.ok() ? left : status;
  };
  const std::function<absl::Status(size_t)> extend = [&](size_t i) -> absl::Status {
    if (i == users.size()) return add();
    return users[i]->session->Extend([&] { return extend(i + 1); });
  };
  return extend(0);
}

namespace weir::capi {

TF_Session* Register(TF_Graph* graph, std::unique_ptr<Session> session) {
  auto* const made = new TF_Session{.graph = graph, .session = std::move(session)};
  graph->sessions.insert(made);
  return made;
}

absl::StatusOr<Tensors> FeedValues(const Outputs& inputs, TF_Tensor* const* values) {
  if (values == nullptr && !inputs.empty()) return InvalidArgument("the values of inputs are null");
  Tensors feeds;
  for (size_t i = 0; i < inputs.size(); ++i) {
    WEIR_ASSIGN_OR_RETURN(feeds.emplace_back(), ValueOf(values[i]));
    const DataType wanted = inputs[i].dtype();
    if (feeds.back().dtype() != wanted) {
      return InvalidArgument("Expects arg[", i, "] to be ", DataTypeName(wanted), " but ",
                             DataTypeName(feeds.back().dtype()), " is provided");
    }
  }
  return feeds;
}

absl::Status StoreFetches(const Tensors& values, TF_Tensor** outputs) {
  for (size_t i = 0; i < values.size(); ++i) {
    const absl::StatusOr<TF_Tensor*> tensor = NewTensor(values[i]);
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

// The arguments of TF_SessionRun.
struct RunArguments {
  TF_Session* session;
  const TF_Buffer* run_options;
  absl::Span<const TF_Output> inputs;
  TF_Tensor* const* input_values;
  const TF_Output* outputs;
  TF_Tensor** output_values;
  int num_outputs;
  const TF_Operation* const* targets;
  int num_targets;
  TF_Buffer* metadata;
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

absl::Status ClosedError() { return absl::CancelledError("Session has been closed."); }

absl::Status RunStep(const RunArguments& args) {
  if (args.session->is_closed) return ClosedError();
  if (args.metadata != nullptr && args.metadata->data != nullptr)
    return InvalidArgument("Passing non-empty run_metadata is invalid.");
  proto::RunOptions options;
  const absl::string_view bytes = BytesOf(args.run_options);
  if (!options.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return InvalidArgument("Unparseable RunOptions proto");
  Session& session = *args.session->session;
  const Graph& graph = session.graph();
  WEIR_ASSIGN_OR_RETURN(const Outputs feeds,
                        OutputsOf(args.inputs.data(), static_cast<int>(args.inputs.size()), graph));
  WEIR_ASSIGN_OR_RETURN(const Outputs fetches, OutputsOf(args.outputs, args.num_outputs, graph));
  WEIR_ASSIGN_OR_RETURN(const std::vector<Operation> targets,
                        TargetsOf(args.targets, args.num_targets, graph));
  WEIR_RETURN_IF_ERROR(CheckFeeds(feeds, fetches));
  if (args.output_values == nullptr && !fetches.empty())
    return InvalidArgument("the array for the values of outputs is null");
  WEIR_ASSIGN_OR_RETURN(const Tensors values, FeedValues(feeds, args.input_values));
  WEIR_ASSIGN_OR_RETURN(const Step step, session.Prepare(feeds, fetches, targets));
  Tensors fetched;
  Cancellation cancellation;
  rpc::RunReport report(options);
  const RunOptions run_options = report.options(cancellation, std::chrono::milliseconds(0));
  WEIR_RETURN_IF_ERROR(step.Run(values, &fetched, run_options));
  WEIR_RETURN_IF_ERROR(StoreFetches(fetched, args.output_values));
  if (args.metadata == nullptr) return absl::OkStatus();
  proto::RunMetadata metadata;
  report.WriteStatistics(session.devices(), &metadata);
  if (report.wants_graph()) {
    const MutexLock lock(args.session->graph->mutex);
    rpc::WritePartition(graph, feeds, fetches, targets, session.devices()[0]->text(), &metadata);
  }
  SetBuffer(metadata.SerializeAsString(), args.metadata);
  return absl::OkStatus();
}

absl::Status SetConfig(absl::string_view bytes, SessionOptions* options) {
  proto::ConfigProto config;
  if (bytes.size() > INT32_MAX ||
      !config.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return InvalidArgument("Unparseable ConfigProto");
  options->num_threads = std::clamp(config.intra_op_parallelism_threads(), 0, 1024);
  options->allow_soft_placement = config.allow_soft_placement();
  options->log_device_placement = config.log_device_placement();
  options->operation_timeout =
      std::chrono::milliseconds(std::max<int64_t>(0, config.operation_timeout_in_ms()));
  return absl::OkStatus();
}

}  // namespace

}  // namespace weir::capi

using weir::MutexLock;
using weir::capi::HaveAll;
using weir::capi::SetStatus;

TF_SessionOptions* TF_NewSessionOptions() {
  auto* const options = new TF_SessionOptions;
  options->options.allow_soft_placement = false;  // as in an empty ConfigProto
  return options;
}

void TF_DeleteSessionOptions(TF_SessionOptions* options) { delete options; }

void TF_SetTarget(TF_SessionOptions* options, const char* target) {
  if (HaveAll("TF_SetTarget", {options})) options->options.target = target == nullptr ? "" : target;
}

void TF_SetConfig(TF_SessionOptions* options, const void* proto, size_t proto_len,
                  TF_Status* status) {
  if (!HaveAll("TF_SetConfig", {options}, status)) return;
  if (proto == nullptr) proto_len = 0;
  SetStatus(status,
            weir::capi::SetConfig({static_cast<const char*>(proto), proto_len}, &options->options));
}

TF_Session* TF_NewSession(TF_Graph* graph, const TF_SessionOptions* opts, TF_Status* status) {
  if (!HaveAll("TF_NewSession", {graph}, status)) return nullptr;
  const MutexLock lock(graph->mutex);
  absl::StatusOr<weir::Session> session = weir::Session::Create(
      *graph->graph, opts == nullptr ? weir::SessionOptions() : opts->options);
  SetStatus(status, session.status());
  if (!session.ok()) return nullptr;
  return weir::capi::Register(graph, std::make_unique<weir::Session>(*std::move(session)));
}

void TF_CloseSession(TF_Session* session, TF_Status* status) {
  if (!HaveAll("TF_CloseSession", {session}, status)) return;
  session->is_closed = true;
  session->session->Close();
  SetStatus(status, absl::OkStatus());
}

void TF_DeleteSession(TF_Session* session, TF_Status* status) {
  if (status != nullptr) SetStatus(status, absl::OkStatus());
  if (session == nullptr) return;
  TF_Graph* const graph = session->graph;
  bool is_last = false;
  {
    const MutexLock lock(graph->mutex);
    graph->sessions.erase(session);
    is_last = graph->is_deleted && graph->sessions.empty();
  }
  delete session;
  if (is_last) delete graph;
}

void TF_SessionRun(TF_Session* session, const TF_Buffer* run_options, const TF_Output* inputs,
                   TF_Tensor* const* input_values, int ninputs, const TF_Output* outputs,
                   TF_Tensor** output_values, int noutputs, const TF_Operation* const* target_opers,
                   int ntargets, TF_Buffer* run_metadata, TF_Status* status) {
  for (int i = 0; output_values != nullptr && i < noutputs; ++i) output_values[i] = nullptr;
  if (!HaveAll("TF_SessionRun", {session}, status)) return;
  if (ninputs < 0 || (inputs == nullptr && ninputs > 0))
    return SetStatus(status, weir::InvalidArgument("no array of ", ninputs, " inputs"));
  SetStatus(status, weir::capi::StepError(weir::capi::RunStep(
                        {session, run_options, absl::MakeConstSpan(inputs, ninputs), input_values,
                         outputs, output_values, noutputs, target_opers, ntargets, run_metadata})));
}
