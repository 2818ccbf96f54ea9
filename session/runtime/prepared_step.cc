#include "weir/session/runtime/prepared_step.h"

#include <utility>

#include "weir/core/tensor/exception.h"
#include "weir/core/tensor/heap.h"
#include "weir/core/tensor/mutex.h"
#include "weir/session/plan/plan_request.h"

namespace weir {

namespace {

constexpr size_t kMaxShapeVariants = 16;

// Returns the shape for which a plan is compiled. For a fed handle, this is the shape of its
// variable, since it determines the shapes of everything read from it.
const Shape& PlannedShape(const Tensor& feed) {
  static const Shape* const unknown = new Shape(Shape::UnknownRank());
  if (feed.dtype() != DT_RESOURCE) return feed.shape();
  if (feed.num_elements() != 1) return *unknown;
  const auto* variable =
      dynamic_cast<const VariableState*>(feed.data<ResourceHandle>()->resource.get());
  return variable == nullptr ? *unknown : variable->shape();
}

bool Fits(const Executor& executor, absl::Span<const Tensor> feeds) {
  const std::vector<Shape>& shapes = executor.plan().feed_shapes;
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (PlannedShape(feeds[i]) != shapes[i]) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PreparedStep>> PreparedStep::Make(PlanRequest request,
                                                                 const PlanEnvironment& env) {
  std::unique_ptr<PreparedStep> step(new PreparedStep(std::move(request), env));
  WEIR_ASSIGN_OR_RETURN(step->graph_, CatchExceptions("Preparing the step", [&] {
                          return PreparePlan(step->request_, env);
                        }));
  return step;
}

absl::Status PreparedStep::CheckFeeds(absl::Span<const Tensor> feeds) const {
  WEIR_RETURN_IF_ERROR(CheckFeedCount(request_.feeds, feeds));
  for (size_t i = 0; i < feeds.size(); ++i)
    WEIR_RETURN_IF_ERROR(CheckFeedType(request_.feeds[i], feeds[i]));
  return absl::OkStatus();
}

absl::Status PreparedStep::CheckFeedShapes(absl::Span<const Tensor> feeds) const {
  for (size_t i = 0; i < feeds.size(); ++i)
    WEIR_RETURN_IF_ERROR(CheckFeedShape(request_.feeds[i], feeds[i]));
  return absl::OkStatus();
}

absl::StatusOr<Executor*> PreparedStep::Find(absl::Span<const Tensor> feeds) {
  Executor* recent = latest_.load(std::memory_order_seq_cst);  // after `running_`
  if (recent != nullptr && Fits(*recent, feeds)) return recent;
  return FindOrCompile(feeds);
}

absl::StatusOr<Executor*> PreparedStep::FindOrCompile(absl::Span<const Tensor> feeds) {
  // The step may be prepared in a kernel that calls a function. The heap of kernels is limited, but
  // Abseil's tables do not survive an exception of operator new.
  const ScopedUnlimitedHeap unlimited;
  return CatchExceptions("Preparing the step", [&] { return FindOrCompileUnguarded(feeds); });
}

absl::StatusOr<Executor*> PreparedStep::FindOrCompileUnguarded(absl::Span<const Tensor> feeds) {
  WEIR_RETURN_IF_ERROR(CheckFeedShapes(feeds));
  const MutexLock lock(mutex_);
  for (const auto& e : executors_) {
    if (!Fits(*e, feeds)) continue;
    latest_.store(e.get(), std::memory_order_release);
    return e.get();
  }
  const bool any = executors_.size() >= kMaxShapeVariants;
  if (any && any_shapes_ != nullptr) return any_shapes_.get();
  std::vector<Shape> shapes;
  for (size_t i = 0; i < feeds.size(); ++i) {
    const bool is_handle = feeds[i].dtype() == DT_RESOURCE;
    shapes.push_back(!any        ? PlannedShape(feeds[i])
                     : is_handle ? Shape::UnknownRank()
                                 : request_.feeds[i].shape());
  }
  WEIR_ASSIGN_OR_RETURN(PlanGraph graph, TakeGraph());
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<const Plan> plan,
                        CompilePlan(std::move(graph), shapes, env_));
  auto executor = std::make_unique<Executor>(std::move(plan), env_.pool, env_.resources);
  Executor* made = executor.get();
  if (any) {
    any_shapes_ = std::move(executor);
  } else {
    executors_.push_back(std::move(executor));
    latest_.store(made, std::memory_order_release);
  }
  return made;
}

// A step without feeds usually has a single plan, and keeping its graph would waste memory: 8 MB
// for an initializer of 10,000 variables. If its executors are forgotten, the graph is prepared
// again.
absl::StatusOr<PlanGraph> PreparedStep::TakeGraph() {
  if (!request_.feeds.empty()) return graph_;
  if (!has_graph_) {
    const ReaderLock lock(env_.graph_mutex);
    return PreparePlan(request_, env_);
  }
  has_graph_ = false;
  return std::move(graph_);
}

// A run that increments `running_` after this does not find the old executors.
void PreparedStep::Forget() {
  const MutexLock lock(mutex_);
  latest_.store(nullptr, std::memory_order_seq_cst);
  for (auto& e : executors_) retired_.push_back(std::move(e));
  if (any_shapes_ != nullptr) retired_.push_back(std::move(any_shapes_));
  executors_.clear();
  has_retired_ = !retired_.empty();
  DropRetired();
}

void PreparedStep::DropRetired() {
  if (running_.load(std::memory_order_seq_cst) > 0) return;
  retired_.clear();
  has_retired_ = false;
}

void PreparedStep::Cancel(const absl::Status& why) {
  const MutexLock lock(mutex_);
  for (const auto& e : executors_) e->Cancel(why);
  for (const auto& e : retired_) e->Cancel(why);
  if (any_shapes_ != nullptr) any_shapes_->Cancel(why);
}

}  // namespace weir
