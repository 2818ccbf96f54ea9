#include "weir/rpc/cluster_steps.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "weir/proto/worker.pb.h"
#include "weir/rpc/cluster/lower_functional_ops.h"
#include "weir/rpc/cluster/partition.h"
#include "weir/rpc/cluster/task_calls.h"
#include "weir/session/passes/passes.h"

namespace weir::rpc {

namespace {

constexpr size_t kMaxCachedSteps = 1000;

}  // namespace

PreparedClusterStep::~PreparedClusterStep() {
  if (*is_evicted) Deregister(registered);
}

ClusterSteps::ClusterSteps(const SessionCluster& cluster, std::string session,
                           std::vector<SessionTask> tasks, const proto::ConfigProto& config,
                           const GraphLimits& limits)
    : cluster_(cluster),
      session_(std::move(session)),
      config_(std::make_unique<proto::ConfigProto>(config)),
      graph_(limits),
      placement_(graph_.graph(), std::move(tasks), config.allow_soft_placement()),
      entries_(kMaxCachedSteps) {}

ClusterSteps::~ClusterSteps() = default;

absl::Status ClusterSteps::Begin(const proto::GraphDef& def) {
  const WriterLock lock(graph_mutex_);
  proto::GraphDef lowered = def;
  LowerFunctionalOps(nullptr, &lowered);
  WEIR_RETURN_IF_ERROR(graph_.Begin(lowered));
  return placed_ = placement_.PlaceNewNodes();
}

absl::StatusOr<int64_t> ClusterSteps::Extend(const proto::GraphDef& nodes, int64_t version) {
  const MutexLock one_at_a_time(extend_mutex_);
  proto::GraphDef lowered = nodes;
  LowerFunctionalOps(graph_.graph().functions(), &lowered);
  return graph_.Extend(lowered, version, [this](const std::function<absl::Status()>& add) {
    const WriterLock lock(graph_mutex_);
    WEIR_RETURN_IF_ERROR(placed_);
    WEIR_RETURN_IF_ERROR(add());
    return placed_ = placement_.PlaceNewNodes();
  });
}

std::vector<TaskName> ClusterSteps::task_names() const {
  std::vector<TaskName> names;
  for (const SessionTask& task : tasks()) names.push_back(task.name);
  return names;
}

std::shared_ptr<ClusterSteps::Entry> ClusterSteps::FindEntry(const StepNames& names) {
  const Key key(names.feeds, names.fetches, names.targets, names.connections);
  std::optional<std::shared_ptr<Entry>> evicted;
  std::shared_ptr<Entry> entry;
  {
    const MutexLock lock(mutex_);
    if (const std::shared_ptr<Entry>* found = entries_.Find(key)) return *found;
    entry = std::make_shared<Entry>();
    evicted = entries_.Insert(key, entry);
  }
  if (evicted) *(*evicted)->is_evicted = true;
  return entry;
}

absl::StatusOr<std::shared_ptr<const PreparedClusterStep>> ClusterSteps::Prepare(
    const StepNames& names, Cancellation* cancellation, std::chrono::milliseconds limit) {
  const std::shared_ptr<Entry> entry = FindEntry(names);
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<const PreparedClusterStep> found,
                        Claim(*entry, cancellation, limit));
  if (found != nullptr) return found;
  // After an error or an exception, another call prepares it.
  struct Release {
    Entry& entry;
    std::shared_ptr<const PreparedClusterStep> step = nullptr;
    ~Release() {
      const MutexLock lock(entry.mutex);
      entry.is_in_preparation = false;
      entry.step = step;
      entry.changed.NotifyAll();
    }
  } release{*entry};
  WEIR_ASSIGN_OR_RETURN(release.step, PrepareNew(*entry, names, cancellation, limit));
  return release.step;
}

absl::StatusOr<std::shared_ptr<const PreparedClusterStep>> ClusterSteps::Claim(
    Entry& entry, Cancellation* cancellation, std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  int64_t token = 0;
  const auto wake = [&entry] {
    const MutexLock lock(entry.mutex);
    entry.changed.NotifyAll();
  };
  if (!cancellation->OnCancel(wake, &token)) return cancellation->status();
  const auto claim = [&]() -> absl::StatusOr<std::shared_ptr<const PreparedClusterStep>> {
    const MutexLock lock(entry.mutex);
    bool in_time = true;
    while (entry.is_in_preparation && in_time && !cancellation->cancelled()) {
      if (limit.count() > 0) {
        in_time = entry.changed.WaitUntil(entry.mutex, until);
      } else {
        entry.changed.Wait(entry.mutex);
      }
    }
    if (cancellation->cancelled()) return cancellation->status();
    if (entry.is_in_preparation) {
      return absl::DeadlineExceededError(absl::StrCat(
          "The step was not prepared within its time limit of ", limit.count(), " ms"));
    }
    entry.is_in_preparation = entry.step == nullptr;
    return entry.step;
  };
  auto claimed = claim();
  cancellation->Unregister(token);
  return claimed;
}

absl::StatusOr<std::shared_ptr<const PreparedClusterStep>> ClusterSteps::PrepareNew(
    const Entry& entry, const StepNames& names, Cancellation* cancellation,
    std::chrono::milliseconds limit) {
  auto step = std::make_shared<PreparedClusterStep>(RegisteredStep{cluster_, session_, {}, {}, {}},
                                                    entry.is_evicted);
  WEIR_ASSIGN_OR_RETURN(StepPartition partition, Cut(names, &step->request));
  WEIR_RETURN_IF_ERROR(Register(std::move(partition), &step->registered, cancellation, limit));
  return step;
}

absl::StatusOr<StepPartition> ClusterSteps::Cut(const StepNames& names, PlanRequest* request) {
  const ReaderLock lock(graph_mutex_);
  WEIR_RETURN_IF_ERROR(placed_);
  WEIR_ASSIGN_OR_RETURN(*request, FindByName(graph_.graph(), names.feeds, names.fetches,
                                             names.targets, names.connections));
  return PartitionStep(*request, graph_.graph(), placement_);
}

absl::Status ClusterSteps::Register(StepPartition partition, RegisteredStep* step,
                                    Cancellation* cancellation, std::chrono::milliseconds limit) {
  step->feeds = std::move(partition.feeds);
  step->fetches = std::move(partition.fetches);
  std::vector<TaskName> tasks;
  std::vector<proto::RegisterGraphRequest> requests(partition.parts.size());
  for (size_t i = 0; i < partition.parts.size(); ++i) {
    tasks.push_back(placement_.tasks()[partition.parts[i].task].name);
    requests[i].set_session_handle(session_);
    requests[i].set_create_worker_session_called(true);
    requests[i].mutable_graph_def()->Swap(partition.parts[i].graph.get());
    *requests[i].mutable_graph_options() = config_->graph_options();
    *requests[i].mutable_config_proto() = *config_;
  }
  std::vector<proto::RegisterGraphResponse> responses;
  const std::vector<absl::Status> statuses =
      CallTasks(cluster_, tasks, "RegisterGraph", &ClusterTask::RegisterGraph, requests, &responses,
                {.cancellation = cancellation, .limit = limit});
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (!statuses[i].ok()) continue;
    const SessionTask& task = placement_.tasks()[partition.parts[i].task];
    step->parts.push_back({task.name, responses[i].graph_handle(), task.host().incarnation});
  }
  const auto failed = std::find_if(statuses.begin(), statuses.end(),
                                   [](const absl::Status& status) { return !status.ok(); });
  if (failed == statuses.end()) return absl::OkStatus();
  Deregister(*step);
  return *failed;
}

bool ClusterSteps::CanCompute(const Output& fetch, const Outputs& feeds, const Outputs& missing) {
  const ReaderLock lock(graph_mutex_);
  const absl::StatusOr<PlanGraph> plan =
      PruneGraph({.feeds = feeds, .fetches = {fetch}}, graph_.graph());
  if (!plan.ok()) return false;
  const absl::flat_hash_set<Output> lacking(missing.begin(), missing.end());
  return std::none_of(plan->nodes.begin(), plan->nodes.end(), [&](const PlanNode& n) {
    return n.kind == PlanNode::Kind::kFeed && lacking.contains(n.node->output(n.fed_output));
  });
}

}  // namespace weir::rpc
