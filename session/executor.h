#ifndef WEIR_SESSION_EXECUTOR_H_
#define WEIR_SESSION_EXECUTOR_H_

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "weir/session/plan.h"

namespace weir {

// An error of this node's kernel, with op, name and (unless it is the CPU) device in front. The
// name of a node in a function begins with those of the nodes that led to it ("caller/node"); an
// error that comes out of a function says so already. FailedNode finds the name of the node of the
// step's graph.
absl::Status AtNode(const Node& node, const Device& device, const absl::Status& status,
                    const FunctionCall* call = nullptr);

// The records of a step, by any thread.
class StepTrace {
 public:
  explicit StepTrace(std::vector<NodeTrace>* records) : records_(records) {}
  void Add(NodeTrace record) {
    const std::lock_guard<std::mutex> lock(mutex_);
    records_->push_back(std::move(record));
  }

 private:
  std::mutex mutex_;
  std::vector<NodeTrace>* const records_;
};

// What the items of a step share: kernels, and what the executor keeps for itself.
struct TracedStep : public StepInfo {
  StepTrace* trace = nullptr;  // null if nobody asks
};

// While it lives, cancelling `outer` (if it is not null) cancels `inner`.
class LinkedCancellation {
 public:
  LinkedCancellation(Cancellation* outer, Cancellation& inner) : outer_(outer) {
    if (outer == nullptr) return;
    linked_ = outer->OnCancel([outer, &inner] { inner.Cancel(outer->status()); }, &token_);
    if (!linked_) inner.Cancel(outer->status());
  }
  ~LinkedCancellation() {
    if (linked_) outer_->Unregister(token_);
  }

 private:
  Cancellation* const outer_;
  int64_t token_ = 0;
  bool linked_ = false;
};

// Runs a Plan, many times and from many threads at once. Each step in flight has a Frame: the
// values of its nodes, its arena, and a context per kernel, all made once and used again by later
// steps.
class Executor {
 public:
  Executor(std::unique_ptr<const Plan> plan, ThreadPool& pool, ResourceMap& resources);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  const Plan& plan() const { return *plan_; }
  // `feeds` have the shapes that the plan was made for. `step_id` is any number that tells steps
  // apart.
  absl::Status Run(absl::Span<const Tensor> feeds, Tensors* fetches, const RunOptions& options,
                   int64_t step_id);
  // The same for the body of a function, as a part of the caller's step.
  absl::Status Call(const StepInfo& step, const Node& caller, absl::Span<const Tensor> args,
                    Tensors* results);
  // The same for what is a part of the step itself: its errors and records name the nodes alone.
  absl::Status RunWithin(const TracedStep& step, absl::Span<const Tensor> feeds, Tensors* fetches);
  // DEADLINE_EXCEEDED for a step in flight: names the node that runs, or what it waits for.
  absl::Status TimedOut(int64_t step_id);
  // Ends the steps in flight with this error.
  void Cancel(const absl::Status& why);

 private:
  struct Frame;
  using Clock = std::chrono::steady_clock;

  absl::StatusOr<Frame*> Acquire();
  absl::StatusOr<std::unique_ptr<Frame>> NewFrame();

  absl::Status RunFilled(Frame* frame, absl::Span<const Tensor> feeds, Tensors* fetches);
  void ReleaseFrame(Frame* frame);
  absl::Status RunFrame(Frame& frame);
  absl::Status WaitForStreams(Frame& frame, absl::Status status) const;
  template <bool kTrace>
  absl::Status RunSequence(Frame& frame);
  absl::Status Thrown(const Frame& frame, int32_t item) const;
  static bool IsLate(const Frame& frame);
  absl::Status TimedOut(const Frame& frame, int32_t task) const;
  absl::Status RunInstruction(Frame& frame, int32_t item);
  absl::Status CheckOutputs(const Frame& frame, const Instruction& item) const;
  absl::StatusOr<int32_t> RunMarker(Frame& frame, int32_t item) const;
  absl::StatusOr<int32_t> EndIteration(Frame& frame, int32_t item) const;
  static void MoveVariables(Frame& frame, const Loop& loop);
  static void ClearDeadFlags(Frame& frame, const Loop& loop);
  void RunTasks(Frame& frame);
  void RunTask(Frame& frame, int32_t task, int32_t item);
  bool StartAsync(Frame& frame, int32_t task, int32_t item);
  void FinishTask(Frame& frame, int32_t task);
  void Post(Frame& frame, int32_t task, int32_t item);
  bool RunPosted(Frame& frame);
  void Fail(Frame& frame, const absl::Status& status);

  bool SkipDead(Frame& frame, const Instruction& item) const;
  void NoteDead(Frame& frame, const Instruction& item) const;
  void ReleaseSlots(Frame& frame, int32_t offset, int count) const;
  // A record with what is known before the item runs; the rest of it.
  std::optional<NodeTrace> BeginTrace(const Frame& frame, int32_t item) const;
  void EndTrace(Frame& frame, int32_t item, std::optional<NodeTrace> record) const;
  absl::Status TakeFetches(Frame& frame, Tensors* fetches) const;
  absl::StatusOr<Tensor> OwnFetch(const Frame& frame, int32_t slot) const;
  int32_t MakerOf(int32_t slot) const;
  absl::Status NoArena(const Device& device, size_t bytes) const;

  const std::unique_ptr<const Plan> plan_;
  ThreadPool& pool_;
  ResourceMap& resources_;
  bool sequential_ = true;  // one task without asynchronous items: no counting, no waiting
  std::mutex mutex_;
  absl::Status cancelled_;  // for good: steps that come later fail too
  std::vector<std::unique_ptr<Frame>> frames_;
  std::vector<Frame*> idle_;
  std::atomic<int> jobs_{0};  // helpers handed to the pool and not yet back
};

}  // namespace weir

#endif  // WEIR_SESSION_EXECUTOR_H_
