#ifndef WEIR_SESSION_RUNTIME_EXECUTOR_H_
#define WEIR_SESSION_RUNTIME_EXECUTOR_H_

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "weir/core/tensor/mutex.h"
#include "weir/session/plan/plan.h"
#include "weir/session/plan/session_options.h"

namespace weir {

// Returns an error of this node's kernel, prefixed with its op, name and (unless it is the CPU)
// device. The name of a node in a function begins with the names of its callers ("caller/node"); an
// error that comes out of a function already has such a prefix. FailedNode finds the name of the
// node of the step's graph.
absl::Status AtNode(const Node& node, const Device& device, const absl::Status& status,
                    const FunctionCall* call = nullptr);

// The trace records of a step; any thread may add some.
class StepTrace {
 public:
  explicit StepTrace(std::vector<NodeTrace>* records) : records_(records) {}
  void Add(NodeTrace record) {
    const MutexLock lock(mutex_);
    records_->push_back(std::move(record));
  }

 private:
  Mutex mutex_;
  std::vector<NodeTrace>* const records_ ABSL_PT_GUARDED_BY(mutex_);
};

// Runs a Plan, many times and from many threads at once. Each step in flight has an ExecutionState:
// the values of its nodes, its arena, and a context per kernel. States are created once and reused
// by later steps.
class Executor {
 public:
  Executor(std::unique_ptr<const Plan> plan, ThreadPool& pool, ResourceMap& resources);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  const Plan& plan() const { return *plan_; }
  // Runs one step. `feeds` have the shapes that the plan was compiled for. `step_id` is any number
  // that tells steps apart. A node that ends after `deadline`, if there is one, ends the step with
  // DEADLINE_EXCEEDED; `options.timeout` is only named there.
  absl::Status Run(absl::Span<const Tensor> feeds, Tensors* fetches, const RunOptions& options,
                   int64_t step_id, std::optional<std::chrono::steady_clock::time_point> deadline);
  // Runs the plan of a function's body as a part of the caller's step.
  absl::Status Call(const StepInfo& step, const Node& caller, absl::Span<const Tensor> args,
                    Tensors* results);
  // Runs a plan that is a part of the step itself: its errors and trace records name only the
  // nodes, without a caller.
  absl::Status RunWithin(const StepInfo& step, absl::Span<const Tensor> feeds, Tensors* fetches);
  // Returns DEADLINE_EXCEEDED for a step in flight, naming the node that runs or the resource that
  // it waits for.
  absl::Status TimedOut(int64_t step_id);
  // Ends the steps in flight, and all later ones, with this error.
  void Cancel(const absl::Status& why);

 private:
  struct ExecutionState;
  using Clock = std::chrono::steady_clock;

  absl::StatusOr<ExecutionState*> Acquire();
  absl::StatusOr<std::unique_ptr<ExecutionState>> NewState();

  absl::Status RunWithFeeds(ExecutionState* state, absl::Span<const Tensor> feeds,
                            Tensors* fetches);
  void ReleaseState(ExecutionState* state);
  absl::Status Execute(ExecutionState& state);
  absl::Status WaitForStreams(ExecutionState& state, absl::Status status) const;
  template <bool kTrace>
  absl::Status RunSequence(ExecutionState& state);
  absl::Status ExceptionStatus(const ExecutionState& state, int32_t instruction) const;
  static bool IsPastDeadline(const ExecutionState& state);
  absl::Status TimedOut(const ExecutionState& state, int32_t task) const;
  absl::Status RunInstruction(ExecutionState& state, int32_t instruction);
  absl::Status CheckOutputs(const ExecutionState& state, const Instruction& instruction) const;
  absl::StatusOr<int32_t> RunMarker(ExecutionState& state, int32_t instruction) const;
  absl::StatusOr<int32_t> EndIteration(ExecutionState& state, int32_t instruction) const;
  static void MoveVariables(ExecutionState& state, const Loop& loop);
  static void ClearDeadFlags(ExecutionState& state, const Loop& loop);
  absl::Status RunTasks(ExecutionState& state);
  void RunTask(ExecutionState& state, int32_t task, int32_t instruction);
  bool StartAsync(ExecutionState& state, int32_t task, int32_t instruction);
  void StartIteration(ExecutionState& state, const Loop& loop);
  void FinishTask(ExecutionState& state, int32_t task);
  void Post(ExecutionState& state, int32_t task, int32_t instruction);
  bool RunPosted(ExecutionState& state);
  void Fail(ExecutionState& state, const absl::Status& status);

  bool SkipDead(ExecutionState& state, const Instruction& instruction) const;
  void RecordDeadness(ExecutionState& state, const Instruction& instruction) const;
  void ReleaseSlots(ExecutionState& state, int32_t offset, int count) const;
  // BeginTrace returns a record of what is known before the instruction runs; EndTrace completes
  // it.
  std::optional<NodeTrace> BeginTrace(const ExecutionState& state, int32_t instruction) const;
  void EndTrace(ExecutionState& state, int32_t instruction, std::optional<NodeTrace> record) const;
  absl::Status TakeFetches(ExecutionState& state, Tensors* fetches) const;
  absl::Status TakeFetch(ExecutionState& state, size_t i, Tensor* fetch) const;
  int32_t ProducerOf(int32_t slot) const;
  absl::Status ArenaError(const Device& device, size_t bytes) const;

  const std::unique_ptr<const Plan> plan_;
  ThreadPool& pool_;
  ResourceMap& resources_;
  bool sequential_ = true;  // one task without asynchronous instructions: no counters, no waiting
  Mutex mutex_;
  absl::Status cancelled_ ABSL_GUARDED_BY(mutex_);  // permanent: later steps fail too
  std::vector<std::unique_ptr<ExecutionState>> states_ ABSL_GUARDED_BY(mutex_);
  std::vector<ExecutionState*> idle_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int> jobs_{0};  // jobs that are scheduled on the pool and have not finished
};

}  // namespace weir

#endif  // WEIR_SESSION_RUNTIME_EXECUTOR_H_
