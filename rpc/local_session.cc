#include "weir/rpc/local_session.h"

#include <algorithm>

#include "weir/core/io/graph_io.h"
#include "weir/proto/master.pb.h"
#include "weir/rpc/lib/function_holders.h"
#include "weir/rpc/lib/run_metadata.h"

namespace weir::rpc {

namespace {

// TensorFlow's clients look for the failed node, and for the task on which it failed.
absl::Status StepError(const absl::Status& status, const Session& session) {
  if (status.ok()) return status;
  absl::string_view task = session.devices()[0]->text();
  task = task.substr(0, task.find("/device:"));
  return absl::Status(status.code(),
                      absl::StrCat("From ", task, ":\n", status.message(), FailedNodeMark(status)));
}

}  // namespace

struct LocalSession::Callable {
  std::vector<std::string> feeds;
  Step step;
  std::unique_ptr<proto::RunOptions> options;
};

absl::StatusOr<std::unique_ptr<MasterSession>> LocalSession::Create(
    const proto::GraphDef& graph, const proto::ConfigProto& config, SessionOptions options,
    const SessionLimits& limits, std::shared_ptr<MemoryQuota> memory) {
  const ScopedMemoryQuota of_session(memory.get());
  std::unique_ptr<LocalSession> session(new LocalSession(limits, std::move(memory)));
  const MutexLock lock(session->extend_mutex_);
  WEIR_RETURN_IF_ERROR(session->graph_.Begin(graph));
  options.allow_soft_placement = config.allow_soft_placement();
  options.log_device_placement = config.log_device_placement();
  if (config.operation_timeout_in_ms() > 0)
    options.operation_timeout = std::chrono::milliseconds(config.operation_timeout_in_ms());
  options.operation_timeout = ShorterLimit(options.operation_timeout, limits.max_step);
  session->shares_state_ = !config.isolate_session_state();
  if (!session->shares_state_) options.resources = nullptr;
  session->NoteFunctions(graph);
  WEIR_ASSIGN_OR_RETURN(Session made, Session::Create(session->graph_.graph(), std::move(options)));
  session->session_ = std::make_unique<Session>(std::move(made));
  return session;
}

std::shared_ptr<MemoryQuota> LocalSession::MemoryOfStep() const {
  return StepMemory(memory_, step_memory_bytes_);
}

absl::StatusOr<int64_t> LocalSession::Extend(const proto::GraphDef& nodes, int64_t version) {
  const ScopedMemoryQuota of_session(memory_.get());
  const MutexLock lock(extend_mutex_);
  WEIR_ASSIGN_OR_RETURN(
      const int64_t extended,
      graph_.Extend(nodes, version, [this](const std::function<absl::Status()>& add) {
        return session_->Extend(add);
      }));
  NoteFunctions(nodes);
  return extended;
}

// A graph may have its iterators first, and be extended by functions that they call.
void LocalSession::NoteFunctions(const proto::GraphDef& graph) {
  if (!shares_state_) return;
  has_functions_ = has_functions_ || graph.library().function_size() > 0;
  containers_holding_functions_.merge(rpc::ContainersHoldingFunctions(graph));
}

std::set<std::string> LocalSession::ContainersHoldingFunctions() {
  const MutexLock lock(extend_mutex_);
  return has_functions_ ? containers_holding_functions_ : std::set<std::string>();
}

absl::Status LocalSession::Run(proto::RunStepRequest& request, Call& call,
                               proto::RunStepResponse* response) {
  const std::shared_ptr<MemoryQuota> memory = MemoryOfStep();
  const ScopedMemoryQuota of_step(memory.get());
  RunReport report(request.options());
  const RunOptions options = report.options(call.cancellation, max_step_limit_);
  absl::StatusOr<Tensors> values = request.partial_run_handle().empty()
                                       ? RunFull(request, options)
                                       : RunPartial(request, options);
  if (!values.ok()) return StepError(values.status(), *session_);
  WEIR_RETURN_IF_ERROR(ReserveResponse(*values, report.bytes(), max_response_, call));
  report.WriteStatistics(session_->devices(), response->mutable_metadata());
  for (int i = 0; i < request.fetch_size(); ++i) {
    proto::NamedTensorProto* tensor = response->add_tensor();
    tensor->set_name(request.fetch(i));
    TensorToProto((*values)[i], tensor->mutable_tensor());
  }
  if (!report.wants_graph()) return absl::OkStatus();
  return session_->Extend([&]() -> absl::Status {  // excludes concurrent changes of the graph
    Outputs feeds, fetches;
    std::vector<Operation> targets;
    for (const proto::NamedTensorProto& feed : request.feed()) {
      WEIR_ASSIGN_OR_RETURN(feeds.emplace_back(), graph_.graph().FindOutput(feed.name()));
    }
    for (const std::string& fetch : request.fetch()) {
      WEIR_ASSIGN_OR_RETURN(fetches.emplace_back(), graph_.graph().FindOutput(fetch));
    }
    for (const std::string& target : request.target())
      targets.emplace_back(graph_.graph().FindNode(target));
    WritePartition(graph_.graph(), feeds, fetches, targets, session_->devices()[0]->text(),
                   response->mutable_metadata());
    return absl::OkStatus();
  });
}

absl::StatusOr<Tensors> LocalSession::RunFull(proto::RunStepRequest& request,
                                              const RunOptions& options) {
  std::vector<std::string> names;
  Tensors feeds, fetches;
  WEIR_RETURN_IF_ERROR(TakeFeeds(request, &names, &feeds));
  WEIR_ASSIGN_OR_RETURN(const Step step,
                        session_->Prepare(names, Names(request.fetch()), Names(request.target())));
  WEIR_RETURN_IF_ERROR(step.Run(feeds, &fetches, options));
  return fetches;
}

absl::StatusOr<std::string> LocalSession::SetUpPartialRun(
    const proto::PartialRunSetupRequest& request, Call&) {
  auto parts = std::make_shared<PartialRunState>();
  Outputs feeds, fetches;
  std::vector<Operation> targets;
  WEIR_RETURN_IF_ERROR(
      session_->Extend([&]() -> absl::Status {  // excludes concurrent changes of the graph
        for (const std::string& name : request.feed()) {
          WEIR_ASSIGN_OR_RETURN(feeds.emplace_back(), graph_.graph().FindOutput(name));
          parts->tensors[name] = feeds.back();
        }
        for (const std::string& name : request.fetch()) {
          WEIR_ASSIGN_OR_RETURN(fetches.emplace_back(), graph_.graph().FindOutput(name));
          parts->tensors[name] = fetches.back();
        }
        for (const std::string& name : request.target()) {
          Node* node = graph_.graph().FindNode(name);
          if (node == nullptr) return NotFound("PartialRunSetup: unknown operation '", name, "'");
          targets.emplace_back(node);
          parts->targets[name] = Operation(node);
        }
        return absl::OkStatus();
      }));
  WEIR_ASSIGN_OR_RETURN(parts->run, session_->StartPartialRun(feeds, fetches, targets));
  return handles_.AddPartialRun(std::move(parts));
}

absl::StatusOr<Tensors> LocalSession::RunPartial(proto::RunStepRequest& request,
                                                 const RunOptions& options) {
  const std::string& handle = request.partial_run_handle();
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<PartialRunState> parts,
                        handles_.FindPartialRun(handle));
  Feeds feeds;
  Outputs fetches;
  std::vector<Operation> targets;
  for (proto::NamedTensorProto& feed : *request.mutable_feed()) {
    const auto it = parts->tensors.find(feed.name());
    if (it == parts->tensors.end())
      return InvalidArgument("The feed ", feed.name(), " was not specified in partial_run_setup.");
    WEIR_ASSIGN_OR_RETURN(Tensor value, TakeFeed(feed.name(), feed.mutable_tensor()));
    feeds.emplace_back(it->second, std::move(value));
  }
  for (const std::string& name : request.fetch()) {
    const auto it = parts->tensors.find(name);
    if (it == parts->tensors.end())
      return InvalidArgument("The fetch ", name, " was not specified in partial_run_setup.");
    fetches.push_back(it->second);
  }
  for (const std::string& name : request.target()) {
    const auto it = parts->targets.find(name);
    if (it == parts->targets.end())
      return InvalidArgument("The target ", name, " was not specified in partial_run_setup.");
    targets.push_back(it->second);
  }
  absl::StatusOr<Tensors> values = parts->run.Run(feeds, fetches, targets, options);
  if (parts->run.is_over()) handles_.RemovePartialRun(handle);
  return values;
}

absl::StatusOr<int64_t> LocalSession::MakeCallable(const proto::CallableOptions& options, Call&) {
  const ScopedMemoryQuota of_session(memory_.get());
  auto callable = std::make_shared<Callable>();
  callable->feeds = Names(options.feed());
  callable->options = std::make_unique<proto::RunOptions>(options.run_options());
  NamedConnections connections;
  for (const proto::TensorConnection& c : options.tensor_connection())
    connections.emplace_back(c.from_tensor(), c.to_tensor());
  WEIR_ASSIGN_OR_RETURN(callable->step, session_->Prepare(callable->feeds, Names(options.fetch()),
                                                          Names(options.target()), connections));
  return handles_.AddCallable(std::move(callable));
}

absl::Status LocalSession::RunCallable(proto::RunCallableRequest& request, Call& call,
                                       proto::RunCallableResponse* response) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<const Callable> callable,
                        handles_.FindCallable(request.handle()));
  const std::shared_ptr<MemoryQuota> memory = MemoryOfStep();
  const ScopedMemoryQuota of_step(memory.get());
  WEIR_ASSIGN_OR_RETURN(const Tensors feeds, TakeFeeds(callable->feeds, request));
  Tensors fetches;
  RunReport report(*callable->options);
  const absl::Status status =
      callable->step.Run(feeds, &fetches, report.options(call.cancellation, max_step_limit_));
  if (!status.ok()) return StepError(status, *session_);
  WEIR_RETURN_IF_ERROR(ReserveResponse(fetches, report.bytes(), max_response_, call));
  report.WriteStatistics(session_->devices(), response->mutable_metadata());
  for (const Tensor& value : fetches) TensorToProto(value, response->add_fetch());
  return absl::OkStatus();
}

absl::Status LocalSession::ReleaseCallable(int64_t handle) {
  return handles_.RemoveCallable(handle);
}

}  // namespace weir::rpc
