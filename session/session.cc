#include "weir/session/session.h"

#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "weir/kernels/gpu.h"
#include "weir/session/executor.h"
#include "weir/session/plan.h"
#include "weir/session/uninitialized.h"

namespace weir {

namespace {

constexpr size_t kMaxShapeVariants = 16;

}  // namespace

struct Session::Impl : std::enable_shared_from_this<Session::Impl> {
  Impl(const Graph& g, SessionOptions o) : graph(g), options(std::move(o)) {}
  // Handles that were fetched may keep variables; what their values lie in goes now.
  ~Impl() {
    for (const auto& variable : resources.All<VariableState>()) variable->Clear();
  }

  const Graph& graph;
  SessionOptions options;
  std::unique_ptr<ThreadPool> own_pool;
  ThreadPool* pool = nullptr;
  std::vector<std::unique_ptr<Device>> devices;
  std::unique_ptr<Placement> placement;
  ResourceMap resources;
  std::atomic<bool> closed{false};
  std::atomic<int64_t> next_step_id{1};

  // Prepared steps by what they were asked for: nodes and output numbers of feeds, fetches and
  // targets.
  using Key = std::vector<std::pair<const Node*, int>>;
  std::mutex mutex;
  absl::flat_hash_map<Key, std::unique_ptr<Step::Impl>> steps;

  const KernelRegistry& kernels() const {
    return options.kernels != nullptr ? *options.kernels : BuiltinKernels();
  }
  PlanEnvironment environment() {
    return PlanEnvironment{graph, kernels(), devices, resources, *pool, options, *placement};
  }
  absl::StatusOr<std::shared_ptr<Step::Impl>> Prepare(PlanRequest request);
};

// A step has one Executor for each set of feed shapes it has met, and one for any shapes once there
// are too many.
struct Step::Impl {
  Session::Impl* session = nullptr;
  PlanRequest request;
  PlanGraph graph;
  std::mutex mutex;
  std::vector<std::unique_ptr<Executor>> executors;
  std::unique_ptr<Executor> any_shapes;
  std::atomic<Executor*> latest{nullptr};
  // Executors whose resources were forgotten, kept until no run can be inside them.
  std::vector<std::unique_ptr<Executor>> retired;
  std::atomic<bool> has_retired{false};
  std::atomic<int> running{0};

  static bool Fits(const Executor& executor, absl::Span<const Tensor> feeds) {
    const std::vector<Shape>& shapes = executor.plan().feed_shapes;
    for (size_t i = 0; i < feeds.size(); ++i) {
      if (feeds[i].shape() != shapes[i]) return false;
    }
    return true;
  }

  absl::Status CheckFeeds(absl::Span<const Tensor> feeds) const {
    if (feeds.size() != request.feeds.size()) {
      return InvalidArgument("The step takes ", request.feeds.size(), " feeds but got ",
                             feeds.size());
    }
    for (size_t i = 0; i < feeds.size(); ++i) {
      const Output& to = request.feeds[i];
      if (feeds[i].dtype() != to.dtype()) {
        return InvalidArgument("Tensor '", to.name(), "' is of type ", DataTypeName(to.dtype()),
                               " but the value fed for it is of type ",
                               DataTypeName(feeds[i].dtype()));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckFeedShapes(absl::Span<const Tensor> feeds) const {
    for (size_t i = 0; i < feeds.size(); ++i) {
      const Output& to = request.feeds[i];
      if (!to.shape().IsCompatibleWith(feeds[i].shape())) {
        return InvalidArgument("Cannot feed value of shape ", feeds[i].shape().ToString(),
                               " for Tensor '", to.name(), "', which has shape ",
                               to.shape().ToString());
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Executor*> Find(absl::Span<const Tensor> feeds) {
    Executor* recent = latest.load(std::memory_order_seq_cst);  // after `running`
    if (recent != nullptr && Fits(*recent, feeds)) return recent;
    WEIR_RETURN_IF_ERROR(CheckFeedShapes(feeds));
    const std::lock_guard<std::mutex> lock(mutex);
    for (const auto& e : executors) {
      if (!Fits(*e, feeds)) continue;
      latest.store(e.get(), std::memory_order_release);
      return e.get();
    }
    const bool any = executors.size() >= kMaxShapeVariants;
    if (any && any_shapes != nullptr) return any_shapes.get();
    std::vector<Shape> shapes;
    for (size_t i = 0; i < feeds.size(); ++i) {
      shapes.push_back(any ? request.feeds[i].shape() : feeds[i].shape());
    }
    WEIR_ASSIGN_OR_RETURN(std::unique_ptr<const Plan> plan,
                          CompilePlan(graph, shapes, session->environment()));
    auto executor = std::make_unique<Executor>(std::move(plan), *session->pool, session->resources);
    Executor* made = executor.get();
    if (any) {
      any_shapes = std::move(executor);
    } else {
      executors.push_back(std::move(executor));
      latest.store(made, std::memory_order_release);
    }
    return made;
  }

  absl::Status Run(absl::Span<const Tensor> feeds, Tensors* fetches, const RunOptions& options) {
    if (session->closed.load(std::memory_order_acquire))
      return absl::CancelledError("Attempted to use a closed Session.");
    WEIR_RETURN_IF_ERROR(CheckFeeds(feeds));
    running.fetch_add(1, std::memory_order_seq_cst);
    absl::Status status = RunCounted(feeds, fetches, options);
    if (running.fetch_sub(1, std::memory_order_seq_cst) == 1 && has_retired.load()) {
      const std::lock_guard<std::mutex> lock(mutex);
      DropRetired();
    }
    return status;
  }

  absl::Status RunCounted(absl::Span<const Tensor> feeds, Tensors* fetches,
                          const RunOptions& options) {
    WEIR_ASSIGN_OR_RETURN(Executor * executor, Find(feeds));
    // Whoever closes the session after this look cancels the executor that was found.
    if (session->closed.load(std::memory_order_acquire))
      return absl::CancelledError("Session has been closed.");
    const int64_t id = session->next_step_id.fetch_add(1, std::memory_order_relaxed);
    absl::Status status = executor->Run(feeds, fetches, options, id);
    if (status.ok()) return status;
    return NameUninitialized(status, session->graph, graph, session->resources);
  }

  // Makes the plans anew before the next run, with resources as they are then. Whoever counts
  // himself in `running` finds none of the old ones after that.
  void Forget() {
    const std::lock_guard<std::mutex> lock(mutex);
    latest.store(nullptr, std::memory_order_seq_cst);
    for (auto& e : executors) retired.push_back(std::move(e));
    if (any_shapes != nullptr) retired.push_back(std::move(any_shapes));
    executors.clear();
    has_retired = !retired.empty();
    DropRetired();
  }

  // Needs the lock.
  void DropRetired() {
    if (running.load(std::memory_order_seq_cst) > 0) return;
    retired.clear();
    has_retired = false;
  }

  void Cancel(const absl::Status& why) {
    const std::lock_guard<std::mutex> lock(mutex);
    for (const auto& e : executors) e->Cancel(why);
    for (const auto& e : retired) e->Cancel(why);
    if (any_shapes != nullptr) any_shapes->Cancel(why);
  }
};

absl::Status Step::Run(absl::Span<const Tensor> feeds, Tensors* fetches) const {
  return Run(feeds, fetches, RunOptions());
}

absl::Status Step::Run(absl::Span<const Tensor> feeds, Tensors* fetches,
                       const RunOptions& options) const {
  if (impl_ == nullptr) return FailedPrecondition("The step is empty: Session::Prepare makes one");
  if (options.timeout.count() > 0) return impl_->Run(feeds, fetches, options);
  RunOptions with_default = options;
  with_default.timeout = impl_->session->options.operation_timeout;
  return impl_->Run(feeds, fetches, with_default);
}

absl::StatusOr<std::shared_ptr<Step::Impl>> Session::Impl::Prepare(PlanRequest request) {
  if (closed.load(std::memory_order_acquire))
    return absl::CancelledError("Attempted to use a closed Session.");
  WEIR_RETURN_IF_ERROR(graph.status());
  Key key;
  for (const Output& o : request.feeds) key.emplace_back(o.node, o.index);
  key.emplace_back(nullptr, 0);
  for (const Output& o : request.fetches) key.emplace_back(o.node, o.index);
  key.emplace_back(nullptr, 0);
  for (const Operation& o : request.targets) key.emplace_back(o.node, 0);
  const std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Step::Impl>& slot = steps[key];
  if (slot == nullptr) {
    auto step = std::make_unique<Step::Impl>();
    step->session = this;
    absl::StatusOr<PlanGraph> plan = PreparePlan(request, environment());
    if (!plan.ok()) {
      steps.erase(key);
      return plan.status();
    }
    step->graph = *std::move(plan);
    step->request = std::move(request);
    slot = std::move(step);
  }
  return std::shared_ptr<Step::Impl>(shared_from_this(), slot.get());
}

Session::Session(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() {
  if (impl_ != nullptr) Close();
}

absl::StatusOr<Session> Session::Create(const Graph& graph, SessionOptions options) {
  WEIR_RETURN_IF_ERROR(graph.status());
  WEIR_RETURN_IF_ERROR(CheckOptimisations(options.disable));
  auto impl = std::make_shared<Impl>(graph, std::move(options));
  if (impl->options.num_threads > 0) {
    impl->own_pool = std::make_unique<ThreadPool>(impl->options.num_threads);
    impl->pool = impl->own_pool.get();
  } else {
    impl->pool = &DefaultThreadPool();
  }
  impl->devices.push_back(NewCpuDevice());
  auto others = impl->options.make_devices ? impl->options.make_devices() : GpuDevices();
  for (auto& device : others) impl->devices.push_back(std::move(device));
  impl->placement =
      std::make_unique<Placement>(impl->graph, impl->kernels(), impl->devices, impl->options);
  return Session(std::move(impl));
}

absl::StatusOr<Tensors> Session::Run(const Feeds& feeds, const Outputs& fetches,
                                     const std::vector<Operation>& targets,
                                     const RunOptions& options) {
  PlanRequest request{.fetches = fetches, .targets = targets};
  Tensors values;
  for (const auto& [to, value] : feeds) {
    request.feeds.push_back(to);
    values.push_back(value);
  }
  Step step;
  WEIR_ASSIGN_OR_RETURN(step.impl_, impl_->Prepare(std::move(request)));
  Tensors results;
  WEIR_RETURN_IF_ERROR(step.Run(values, &results, options));
  return results;
}

absl::StatusOr<Tensors> Session::Run(const std::vector<std::pair<std::string, Tensor>>& feeds,
                                     const std::vector<std::string>& fetches,
                                     const std::vector<std::string>& targets,
                                     const RunOptions& options) {
  Feeds outputs_fed;
  Outputs fetched;
  std::vector<Operation> run;
  for (const auto& [name, value] : feeds) {
    WEIR_ASSIGN_OR_RETURN(const Output output, impl_->graph.FindOutput(name));
    outputs_fed.emplace_back(output, value);
  }
  for (const std::string& name : fetches) {
    WEIR_ASSIGN_OR_RETURN(const Output output, impl_->graph.FindOutput(name));
    fetched.push_back(output);
  }
  for (const std::string& name : targets) {
    Node* node = impl_->graph.FindNode(name);
    if (node == nullptr)
      return NotFound("The name '", name, "' refers to an Operation not in the graph.");
    run.emplace_back(node);
  }
  return Run(outputs_fed, fetched, run, options);
}

absl::StatusOr<Step> Session::Prepare(const Outputs& feeds, const Outputs& fetches,
                                      const std::vector<Operation>& targets) {
  Step step;
  WEIR_ASSIGN_OR_RETURN(step.impl_, impl_->Prepare(PlanRequest{feeds, fetches, targets}));
  return step;
}

const Graph& Session::graph() const { return impl_->graph; }
ResourceMap& Session::resources() { return impl_->resources; }
ThreadPool& Session::pool() { return *impl_->pool; }

std::vector<Device*> Session::devices() const {
  std::vector<Device*> out;
  for (const auto& device : impl_->devices) out.push_back(device.get());
  return out;
}

void Session::Reset(const std::vector<std::string>& containers) {
  impl_->resources.Reset(containers);
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  for (const auto& [key, step] : impl_->steps) step->Forget();
}

void Session::Close() {
  if (impl_->closed.exchange(true)) return;
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  for (const auto& [key, step] : impl_->steps)
    step->Cancel(absl::CancelledError("Session has been closed."));
}

}  // namespace weir
