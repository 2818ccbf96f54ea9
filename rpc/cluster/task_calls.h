#ifndef WEIR_RPC_CLUSTER_TASK_CALLS_H_
#define WEIR_RPC_CLUSTER_TASK_CALLS_H_

#include <functional>
#include <utility>
#include <vector>

#include "weir/core/tensor/exception.h"
#include "weir/rpc/cluster/session_cluster.h"
#include "weir/rpc/cluster/task_placement.h"

// How a master calls the tasks of its cluster, one of which is its own.
namespace weir::rpc {

// The error of a task as a client of the master sees it, in TensorFlow's form: "From TASK:\n...".
absl::Status FromTask(const TaskName& task, const absl::Status& status);

// Calls `method` of ClusterTask on a task, by its name in the WorkerService: directly on the own
// task, where the call ends before this returns, and over the network otherwise. `response`
// outlives the call of `answered`.
template <class Request, class Response, class Method>
void CallTask(const SessionCluster& cluster, const TaskName& task, const char* name, Method method,
              Request& request, Response* response, const Peers::AskOptions& options,
              const Peers::Answered& answered) {
  if (task != cluster.own) {
    return cluster.task.peers().Ask({task.ToString(), cluster.spec.AddressOf(task)}, name, request,
                                    response, options, answered);
  }
  Call call;
  const LinkedCancellation linked(options.cancellation, call.cancellation);
  answered(CatchExceptions(name, [&] { return (cluster.task.*method)(request, call, response); }));
}

// Waits for the answers of several tasks.
class TaskAnswers {
 public:
  explicit TaskAnswers(size_t count)
      : answers_(count), is_there_(count), missing_(static_cast<int>(count)) {}
  // What to call with answer `i`.
  Peers::Answered Expect(size_t i);
  // Waits for all, and calls `waiting(i)` for each that is missing, every ten seconds.
  std::vector<absl::Status> Wait(const std::function<void(size_t)>& waiting = {});

 private:
  Mutex mutex_;
  CondVar answered_;
  std::vector<absl::Status> answers_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> is_there_ ABSL_GUARDED_BY(mutex_);
  int missing_ ABSL_GUARDED_BY(mutex_);
};

// Calls all tasks at the same time, the own one last, and waits. Returns the errors, by task, after
// "From TASK:". `requests` and `responses` are by task.
template <class Request, class Response, class Method>
std::vector<absl::Status> CallTasks(const SessionCluster& cluster,
                                    const std::vector<TaskName>& tasks, const char* name,
                                    Method method, std::vector<Request>& requests,
                                    std::vector<Response>* responses,
                                    const Peers::AskOptions& options,
                                    const std::function<void(size_t)>& waiting = {}) {
  responses->resize(tasks.size());
  TaskAnswers answers(tasks.size());
  const auto call = [&](size_t i) {
    CallTask(cluster, tasks[i], name, method, requests[i], &(*responses)[i], options,
             answers.Expect(i));
  };
  for (const bool is_own : {false, true}) {
    for (size_t i = 0; i < tasks.size(); ++i) {
      if ((tasks[i] == cluster.own) == is_own) call(i);
    }
  }
  std::vector<absl::Status> statuses = answers.Wait(waiting);
  for (size_t i = 0; i < tasks.size(); ++i) statuses[i] = FromTask(tasks[i], statuses[i]);
  return statuses;
}

// Calls a task without waiting for the answer.
template <class Response, class Request, class Method>
void NotifyTask(const SessionCluster& cluster, const TaskName& task, const char* name,
                Method method, Request request) {
  constexpr std::chrono::seconds kLimit(10);
  auto call = std::make_shared<std::pair<Request, Response>>(std::move(request), Response());
  CallTask(cluster, task, name, method, call->first, &call->second, {.limit = kLimit},
           [call](const absl::Status&) {});
}

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_TASK_CALLS_H_
