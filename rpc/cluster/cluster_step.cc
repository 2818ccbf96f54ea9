#include "weir/rpc/cluster/cluster_step.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "weir/proto/config.pb.h"
#include "weir/proto/worker.pb.h"
#include "weir/rpc/cluster/task_calls.h"

// A run. Feeds lie in the rendezvous of the master's own task before the parts ask for them, and
// fetches are received from their tasks as any other value is, so the master needs no part of its
// own. RunGraph ends when a part has ended; calls of other tasks hold no thread meanwhile.
//
// When a part fails, its task tells those that wait for its values, so several parts fail for one
// reason, and the master cancels the rest. Which error comes first is a matter of chance. The one
// that tells the most is kept: of a task that was lost or restarted, from which clients recover;
// then of a task itself; then those that a task has passed on; last the consequences of
// cancellation. An error that was passed on may come before that of the task where it began. Then
// the others are cancelled a little later, as the error of the task would be lost otherwise.
namespace weir::rpc {

namespace {

enum Rank { kLost, kOriginal, kPassedOn, kCancelled };

// How long after an error that was passed on the task may take to report it.
constexpr std::chrono::milliseconds kPatience(500);
// TensorFlow's tasks say so of the consequences of another error.
constexpr absl::string_view kDerived = "[_Derived_]";

int RankOf(const absl::Status& status) {
  if (absl::IsCancelled(status) || absl::StrContains(status.message(), kDerived)) return kCancelled;
  if (!PassedOnBy(status).empty()) return kPassedOn;
  return absl::IsUnavailable(status) || absl::IsAborted(status) ? kLost : kOriginal;
}

// TensorFlow's masters choose 56 bits as well.
int64_t NewStepId() { return NewRequestId() & ((int64_t{1} << 56) - 1); }

}  // namespace

void Deregister(const RegisteredStep& step) {
  for (const RegisteredStep::Part& part : step.parts) {
    proto::DeregisterGraphRequest request;
    request.set_session_handle(step.session);
    request.set_graph_handle(part.handle);
    request.set_create_worker_session_called(true);
    NotifyTask<proto::DeregisterGraphResponse>(step.cluster, part.task, "DeregisterGraph",
                                               &ClusterTask::DeregisterGraph, std::move(request));
  }
}

struct ClusterStep::Part {
  proto::RunGraphRequest request;
  proto::RunGraphResponse response;
  bool has_ended = false;  // guarded by the mutex of the step
};

// The values of one call of Fetch.
struct ClusterStep::Received {
  Tensors values;
  size_t missing = 0;
};

ClusterStep::ClusterStep(const RegisteredStep& step, const Report& report,
                         Cancellation* cancellation)
    : step_(step),
      id_(NewStepId()),
      local_(step_.cluster.task.Exchange(id_)),
      exchange_(local_, id_, step_.cluster.own, step_.cluster.spec, step_.cluster.task.peers()),
      linked_(cancellation, cancellation_),
      outer_(cancellation) {
  for (const RegisteredStep::Part& part : step_.parts) {
    proto::RunGraphRequest& request = parts_.emplace_back(std::make_unique<Part>())->request;
    request.set_session_handle(step_.session);
    request.set_graph_handle(part.handle);
    request.set_step_id(id_);
    request.set_create_worker_session_called(true);
    request.set_store_errors_in_response_body(true);
    request.set_request_id(NewRequestId());
    request.mutable_exec_opts()->set_record_timeline(report.trace);
    request.mutable_exec_opts()->set_record_partition_graphs(report.graphs);
  }
}

ClusterStep::~ClusterStep() {
  cancellation_.Cancel(absl::CancelledError("The step was given up"));
  const bool failed = !WaitForParts().ok();
  std::vector<TaskName> tasks = {step_.cluster.own};
  for (const RegisteredStep::Part& part : step_.parts) {
    if (part.task != step_.cluster.own) tasks.push_back(part.task);
  }
  proto::CleanupGraphRequest request;
  request.set_step_id(id_);
  if (!failed) {
    for (const TaskName& task : tasks) {
      NotifyTask<proto::CleanupGraphResponse>(step_.cluster, task, "CleanupGraph",
                                              &ClusterTask::CleanupGraph, request);
    }
    return;
  }
  // The calls have ended here; the parts end on their tasks, and take nothing from a queue that a
  // later step puts there.
  constexpr std::chrono::seconds kLimit(1);
  std::vector<proto::CleanupGraphRequest> requests(tasks.size(), request);
  std::vector<proto::CleanupGraphResponse> responses;
  CallTasks(step_.cluster, tasks, "CleanupGraph", &ClusterTask::CleanupGraph, requests, &responses,
            {.limit = kLimit});
}

absl::Status ClusterStep::Feed(int feed, const Tensor& value) {
  for (const FedValue& fed : step_.feeds) {
    if (fed.feed == feed) WEIR_RETURN_IF_ERROR(local_->Send(fed.key, {value, false}));
  }
  return absl::OkStatus();
}

void ClusterStep::Start() {
  {
    const MutexLock lock(mutex_);
    running_ = static_cast<int>(parts_.size());
  }
  RunParts(/*own=*/false);
  StartOwnPart();
}

void ClusterStep::StartOwnPart() {
  try {
    own_part_ = std::thread([this] { RunParts(/*own=*/true); });
  } catch (const std::system_error& error) {
    const absl::Status status = absl::ResourceExhaustedError(
        absl::StrCat("No thread can be started for the step: ", error.what()));
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (step_.parts[i].task == step_.cluster.own) EndPart(i, status);
    }
  }
}

void ClusterStep::RunParts(bool own) {
  for (size_t i = 0; i < parts_.size(); ++i) {
    const TaskName& task = step_.parts[i].task;
    if ((task == step_.cluster.own) != own) continue;
    CallTask(
        step_.cluster, task, "RunGraph", &ClusterTask::RunGraph, parts_[i]->request,
        &parts_[i]->response,
        {.cancellation = &cancellation_, .step_id = id_, .incarnation = step_.parts[i].incarnation},
        [this, i](const absl::Status& status) { EndPart(i, status); });
  }
}

void ClusterStep::EndPart(size_t i, const absl::Status& status) {
  const proto::RunGraphResponse& response = parts_[i]->response;
  if (!status.ok()) {
    Fail(step_.parts[i].task, status);
  } else if (response.status_code() != proto::error::OK) {
    Fail(step_.parts[i].task, absl::Status(static_cast<absl::StatusCode>(response.status_code()),
                                           response.status_error_message()));
  }
  const MutexLock lock(mutex_);
  parts_[i]->has_ended = true;
  --running_;
  changed_.NotifyAll();
}

bool ClusterStep::IsEcho(const absl::Status& status) const {
  const std::string origin = PassedOnBy(status);
  for (size_t i = 0; !origin.empty() && i < parts_.size(); ++i) {
    if (step_.parts[i].task.ToString() == origin) return !parts_[i]->has_ended;
  }
  return false;
}

void ClusterStep::Fail(const TaskName& task, const absl::Status& status) {
  const auto cancel = [this] {
    cancellation_.Cancel(absl::CancelledError("Another part of the step failed"));
  };
  bool is_echo = false;
  {
    const MutexLock lock(mutex_);
    failures_.push_back(FromTask(task, status));
    is_echo = IsEcho(status);
    if (is_echo && !patience_)
      patience_ = step_.cluster.task.timer().At(Timer::Clock::now() + kPatience, cancel);
  }
  local_->Abort(status);
  if (!is_echo) cancel();
}

void ClusterStep::BeginFetch(int fetch, Received* received, size_t i) {
  const RendezvousKey& key = step_.fetches[fetch];
  exchange_.Receive(key, &cancellation_,
                    [this, &key, received, i](absl::StatusOr<SentValue> value) {
                      if (value.ok() && value->is_dead) value = DeadFetchError(id_, key.text);
                      // The part that should have sent it fails too, and says why.
                      if (!value.ok()) Fail(step_.cluster.own, value.status());
                      const MutexLock lock(mutex_);
                      if (value.ok()) received->values[i] = std::move(value->value);
                      --received->missing;
                      --receiving_;
                      changed_.NotifyAll();
                    });
}

absl::StatusOr<Tensors> ClusterStep::Fetch(const std::vector<int>& fetches) {
  Received received = {Tensors(fetches.size()), fetches.size()};
  {
    const MutexLock lock(mutex_);
    receiving_ += static_cast<int>(fetches.size());
  }
  for (size_t i = 0; i < fetches.size(); ++i) BeginFetch(fetches[i], &received, i);
  {
    const MutexLock lock(mutex_);
    while (received.missing > 0) changed_.Wait(mutex_);
    if (failures_.empty()) return std::move(received.values);
  }
  return WaitForParts();
}

absl::Status ClusterStep::ErrorLocked() const {
  if (failures_.empty()) return absl::OkStatus();
  const absl::Status& best = *std::min_element(
      failures_.begin(), failures_.end(),
      [](const absl::Status& a, const absl::Status& b) { return RankOf(a) < RankOf(b); });
  const bool is_consequence = RankOf(best) == kCancelled;
  return is_consequence && outer_ != nullptr && outer_->cancelled() ? outer_->status() : best;
}

absl::Status ClusterStep::WaitForParts() {
  {
    const MutexLock lock(mutex_);
    while (running_ > 0 || receiving_ > 0) changed_.Wait(mutex_);
  }
  if (own_part_.joinable()) own_part_.join();
  std::optional<Timer::Alarm> patience;
  {
    const MutexLock lock(mutex_);
    patience = std::exchange(patience_, std::nullopt);
  }
  if (patience) step_.cluster.task.timer().Forget(*patience);
  const MutexLock lock(mutex_);
  return ErrorLocked();
}

absl::Status ClusterStep::Finish(proto::RunMetadata* metadata) {
  WEIR_RETURN_IF_ERROR(WaitForParts());
  if (metadata == nullptr) return absl::OkStatus();
  for (const std::unique_ptr<Part>& part : parts_) {
    if (part->request.exec_opts().record_timeline())
      metadata->mutable_step_stats()->MergeFrom(part->response.step_stats());
    metadata->mutable_partition_graphs()->MergeFrom(part->response.partition_graph());
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensors> ClusterStep::Run(const std::vector<Tensor>& feeds,
                                         std::chrono::milliseconds limit,
                                         proto::RunMetadata* metadata) {
  for (size_t i = 0; i < feeds.size(); ++i)
    WEIR_RETURN_IF_ERROR(Feed(static_cast<int>(i), feeds[i]));
  Received received = {Tensors(step_.fetches.size()), step_.fetches.size()};
  std::optional<ScopedAlarm> end;
  if (limit.count() > 0) {
    end.emplace(step_.cluster.task.timer(), Timer::Clock::now() + limit, [this, limit] {
      cancellation_.Cancel(absl::DeadlineExceededError(
          absl::StrCat("The step exceeded its time limit of ", limit.count(), " ms")));
    });
  }
  {
    const MutexLock lock(mutex_);
    running_ = static_cast<int>(parts_.size());
    receiving_ = static_cast<int>(received.missing);
  }
  RunParts(/*own=*/false);
  for (size_t i = 0; i < step_.fetches.size(); ++i) BeginFetch(static_cast<int>(i), &received, i);
  RunParts(/*own=*/true);
  WEIR_RETURN_IF_ERROR(Finish(metadata));
  const MutexLock lock(mutex_);
  return std::move(received.values);
}

}  // namespace weir::rpc
