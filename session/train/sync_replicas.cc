#include "weir/session/train/sync_replicas.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_join.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/containers/data_flow.h"
#include "weir/ops/containers/queue.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/sparse/sparse.h"
#include "weir/session/train/coordinator.h"
#include "weir/session/train/queue_runner.h"

namespace weir {

// What ApplyGradients has added to the graph.
struct SyncReplicasOptimizer::Nodes {
  Variable global_step, local_step;
  Operation init_local_step;
  std::vector<std::function<Operation()>> set_accumulator_steps;  // each adds a node
  Operation init_chief;  // init_local_step, and the accumulators' steps
  Output not_ready;      // names of uninitialized variables
  std::optional<Queue> tokens;
  std::shared_ptr<QueueRunner> updates;  // its enqueue op updates the variables and adds tokens
};

namespace {

Graph* GraphOf(const GradsAndVariables& items, const Variable& global_step) {
  if (global_step.valid()) return &global_step.graph();
  for (const GradAndVariable& item : items) {
    if (item.variable.valid()) return &item.variable.graph();
  }
  return nullptr;
}

// The mean of as many gradients as are required. The op is named as Python names it.
template <class Accumulator>
auto TakeMean(Accumulator& accumulator, int required, absl::string_view op) {
  Graph& graph = accumulator.handle().graph();
  const NameScope scope(graph, op);
  return accumulator.TakeGradient(Const(graph, required, "num_required"), scope.name());
}

class SyncReplicasHook final : public SessionHook {
 public:
  // What the hook runs when a session starts, and for the chief also during the session and at its
  // end.
  struct Plan {
    Output not_ready;
    Operation init_local, init_tokens;           // no tokens: invalid
    std::shared_ptr<const QueueRunner> updates;  // null except for the chief
    Operation close_tokens;                      // invalid except for the chief
  };
  explicit SyncReplicasHook(Plan plan) : plan_(std::move(plan)) {}

  absl::Status Begin(Graph& /*graph*/) override {
    if (plan_.init_local.valid()) return absl::OkStatus();
    return FailedPrecondition(
        "SyncReplicasOptimizer: ApplyGradients must succeed before MakeSessionHook");
  }

  absl::Status AfterCreateSession(HookContext& context) override {
    Session& session = context.session();
    WEIR_ASSIGN_OR_RETURN(const Tensors missing, session.Run({plan_.not_ready}));
    if (missing[0].num_elements() > 0) {
      return FailedPrecondition(
          "Init operations did not make model ready for SyncReplicasOptimizer local_init. Init "
          "op: ",
          plan_.init_local.name(),
          ", variables not initialized: ", absl::StrJoin(missing[0].flat<std::string>(), ", "));
    }
    WEIR_RETURN_IF_ERROR(session.Run(plan_.init_local));
    if (plan_.init_tokens.valid()) WEIR_RETURN_IF_ERROR(session.Run(plan_.init_tokens));
    if (plan_.updates == nullptr) return absl::OkStatus();
    Coordinator& coordinator = context.coordinator();
    WEIR_RETURN_IF_ERROR(StartQueueRunner(plan_.updates, session, coordinator));
    // If an update fails, the chief's own step may wait for a token that does not come. CANCELLED
    // is the end of the session, or of the queue.
    coordinator.Start("sync_replicas_close_on_error", [&coordinator, &session] {
      coordinator.WaitForStop();
      const absl::Status status = coordinator.status();
      if (!status.ok() && !absl::IsCancelled(status)) session.Close();
    });
    return absl::OkStatus();
  }

  absl::Status End(HookContext& context) override {
    return plan_.close_tokens.valid() ? context.session().Run(plan_.close_tokens)
                                      : absl::OkStatus();
  }

 private:
  const Plan plan_;
};

}  // namespace

SyncReplicasOptimizer::SyncReplicasOptimizer(std::unique_ptr<Optimizer> optimizer,
                                             SyncReplicasOptions options)
    : optimizer_(std::move(optimizer)), options_(std::move(options)) {
  if (options_.total_num_replicas == 0)
    options_.total_num_replicas = options_.replicas_to_aggregate;
}

SyncReplicasOptimizer::~SyncReplicasOptimizer() = default;

GradsAndVariables SyncReplicasOptimizer::ComputeGradients(const Output& loss,
                                                          const ComputeGradientsOptions& options) {
  return optimizer_->ComputeGradients(loss, options);
}

Operation SyncReplicasOptimizer::Minimize(const Output& loss, const MinimizeOptions& options) {
  const GradsAndVariables items =
      ComputeGradients(loss, {.var_list = options.var_list,
                              .gate_gradients = options.gate_gradients,
                              .aggregation = options.aggregation,
                              .colocate_gradients_with_ops = options.colocate_gradients_with_ops,
                              .grad_loss = options.grad_loss});
  return ApplyGradients(items, {.global_step = options.global_step});
}

absl::Status SyncReplicasOptimizer::Check(const GradsAndVariables& items,
                                          const Variable& global_step) const {
  if (nodes_ != nullptr)
    return FailedPrecondition("SyncReplicasOptimizer: ApplyGradients was called before");
  if (options_.replicas_to_aggregate < 1 || options_.total_num_replicas < 1) {
    return InvalidArgument(
        "SyncReplicasOptimizer: the numbers of replicas must be positive, but "
        "replicas_to_aggregate "
        "is ",
        options_.replicas_to_aggregate, " and total_num_replicas is ", options_.total_num_replicas);
  }
  if (items.empty()) return InvalidArgument("Must supply at least one variable");
  if (!global_step.valid()) return InvalidArgument("Global step is required to check staleness");
  return absl::OkStatus();
}

Operation SyncReplicasOptimizer::ApplyGradients(const GradsAndVariables& items,
                                                const ApplyGradientsOptions& options) {
  const Variable& step = options.global_step;
  Graph* const graph = GraphOf(items, step);
  if (graph == nullptr || !graph->Fail(Check(items, step)).ok()) return {};
  nodes_ = std::make_unique<Nodes>();
  nodes_->global_step = step;
  AddLocalStep(*graph);
  nodes_->not_ready = ReportUninitializedVariables(*graph, GlobalVariables(*graph));

  const NameScope scope(*graph, options_.name);
  std::vector<Operation> accumulated;
  GradsAndVariables means = items;
  for (GradAndVariable& item : means) {
    if (!item.grad.none()) accumulated.push_back(Accumulate(item, &item.grad));
  }
  Operation train;
  {
    const DeviceScope with_step(*graph, step.device());
    const NameScope root(*graph, "");
    const Operation update = optimizer_->ApplyGradients(means, {.global_step = step});
    train = Synchronize(*graph, update, accumulated);
  }
  std::vector<Operation> init = {nodes_->init_local_step};
  for (const auto& set_step : nodes_->set_accumulator_steps) init.push_back(set_step());
  nodes_->init_chief = Group(*graph, init);
  return train;
}

// The variable stays on the worker: it is colocated with a node that no scope places elsewhere.
void SyncReplicasOptimizer::AddLocalStep(Graph& graph) {
  const Variable& step = nodes_->global_step;
  {
    const ColocateWith on_worker(graph, NoOp(graph));
    nodes_->local_step = MakeVariable(graph, 0,
                                      {.name = "sync_rep_local_step",
                                       .dtype = step.dtype(),
                                       .trainable = false,
                                       .collections = {{collections::kLocalVariables}}});
  }
  const Output assigned = Assign(nodes_->local_step, step);
  if (!assigned.valid()) return;
  // Of a resource variable it is the read after the assignment, which TensorFlow does not run here.
  nodes_->init_local_step = nodes_->local_step.is_resource()
                                ? Operation(assigned.node->control_inputs().front())
                                : Operation(assigned);
}

// Adds the accumulator of a gradient. Returns the op that passes on the gradient, and the mean that
// the update applies instead of it.
Operation SyncReplicasOptimizer::Accumulate(const GradAndVariable& item, Grad* mean) {
  const Variable& v = item.variable;
  if (!v.valid()) return {};
  Graph& graph = v.graph();
  const DeviceScope on_device(graph, v.device());
  const std::string shared_name = v.name() + "/grad_accum";
  const auto local_step = [&] { return Cast(nodes_->local_step.value(), DT_INT64); };
  const auto add = [&](auto accumulator, const auto& gradient, absl::string_view take) {
    const Operation applied = accumulator.ApplyGradient(gradient, local_step());
    if (applied.valid()) *mean = TakeMean(accumulator, options_.replicas_to_aggregate, take);
    nodes_->set_accumulator_steps.push_back(
        [accumulator, step = nodes_->global_step, device = v.device()]() mutable {
          const DeviceScope on_device(step.graph(), device);
          return accumulator.SetGlobalStep(Cast(step.value(), DT_INT64), "SetGlobalStep");
        });
    return applied;
  };
  if (item.grad.is_slices()) {
    const IndexedSlices slices = item.grad.slices();
    return add(SparseConditionalAccumulator(graph, slices.values.dtype(),
                                            {.shape = Shape(), .shared_name = shared_name}),
               slices, "SparseAccumulatorTakeGradient");
  }
  const Output dense = item.grad.dense();
  return add(ConditionalAccumulator(graph, dense.dtype(),
                                    {.shape = v.shape(), .shared_name = shared_name}),
             dense, "ResourceAccumulatorTakeGradient");
}

// Adds the queue of tokens and the op that adds tokens after an update. Returns the op with which a
// worker takes one, after it has passed on its gradients.
Operation SyncReplicasOptimizer::Synchronize(Graph& graph, const Operation& update,
                                             const std::vector<Operation>& accumulated) {
  const DataType dtype = nodes_->global_step.dtype();
  {
    const DeviceScope cpu(graph, "/device:CPU:*");
    nodes_->tokens = Queue::Fifo(
        graph, -1, {dtype}, {.shapes = {Shape()}, .shared_name = "sync_token_q"}, "sync_token_q");
  }
  Output token;
  {
    const ControlDependencies after(graph, accumulated);
    token = nodes_->tokens->Dequeue()[0];
  }
  const Operation train(Assign(nodes_->local_step, token));
  Operation sync;
  {
    const ControlDependencies after(graph, {update});
    sync =
        EnqueueTokens(graph, std::max(options_.total_num_replicas, options_.replicas_to_aggregate));
  }
  if (options_.variable_averages != nullptr) {
    const ControlDependencies after(graph, {sync});
    sync = options_.variable_averages->Apply(options_.variables_to_average);
  }
  nodes_->updates = std::make_shared<QueueRunner>();
  nodes_->updates->enqueue_ops = {sync};
  nodes_->updates->close_op = nodes_->tokens->Close();
  nodes_->updates->cancel_op = nodes_->tokens->Close(/*cancel_pending_enqueues=*/true);
  if (sync.valid()) nodes_->updates->queue_name = nodes_->tokens->handle().node->name();
  return train;
}

Operation SyncReplicasOptimizer::EnqueueTokens(Graph& graph, int count) {
  if (!graph.status().ok()) return {};
  return nodes_->tokens->EnqueueMany({Fill({count}, nodes_->global_step)});
}

Operation SyncReplicasOptimizer::InitTokensOp(std::optional<int> num_tokens) {
  if (nodes_ == nullptr || !nodes_->init_chief.valid()) return {};
  Graph& graph = nodes_->global_step.graph();
  const int needed = options_.replicas_to_aggregate - options_.total_num_replicas;
  const int count = num_tokens.value_or(options_.replicas_to_aggregate);
  if (count < std::max(needed, 0)) {
    graph.Fail(InvalidArgument("Too few tokens to finish the first step: ", count, " (given) vs ",
                               std::max(needed, 0), " (needed)"));
    return {};
  }
  if (count == 0) return NoOp(graph, "no_init_tokens");
  const DeviceScope with_step(graph, nodes_->global_step.device());
  const NameScope root(graph, "");
  return EnqueueTokens(graph, count);
}

std::shared_ptr<SessionHook> SyncReplicasOptimizer::MakeSessionHook(bool is_chief,
                                                                    std::optional<int> num_tokens) {
  SyncReplicasHook::Plan plan;
  if (nodes_ != nullptr && nodes_->init_chief.valid()) {
    plan.not_ready = nodes_->not_ready;
    plan.init_local = is_chief ? nodes_->init_chief : nodes_->init_local_step;
  }
  if (is_chief && plan.init_local.valid()) {
    plan.init_tokens = InitTokensOp(num_tokens);
    // Without an op that cancels: a session that is replaced must not close the queue that the next
    // one uses.
    auto updates = std::make_shared<QueueRunner>(*nodes_->updates);
    plan.close_tokens = std::exchange(updates->cancel_op, Operation());
    plan.updates = std::move(updates);
  }
  return std::make_shared<SyncReplicasHook>(std::move(plan));
}

}  // namespace weir
