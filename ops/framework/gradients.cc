#include "weir/ops/framework/gradients.h"

#include <algorithm>
#include <optional>

#include "weir/core/graph/scope.h"
#include "weir/core/tensor/exception.h"
#include "weir/ops/framework/backprop_internal.h"
#include "weir/ops/framework/gradient_util.h"
#include "weir/ops/framework/partitioned_variable.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"

namespace weir {

namespace {

// A scope object: during its lifetime, new nodes are created in this gradient loop, unless it is
// null.
class GradientLoopScope {
 public:
  GradientLoopScope(Graph& graph, const GradientLoop* loop) {
    if (loop != nullptr) context_.emplace(FlowStack::Of(graph), loop->backward());
  }

 private:
  std::optional<InContext> context_;
};

}  // namespace

absl::StatusOr<Grad> Backprop::InitialGrad(int i) {
  const Output& y = ys_[i];
  const std::string name = absl::StrCat("grad_ys_", i);
  const Grad given = options_.grad_ys.empty() ? Grad() : options_.grad_ys[i];
  if (given.none()) {
    if (IsComplex(y.dtype())) {
      return InvalidArgument("Gradients of complex tensors (", y.name(), ") must set grad_ys");
    }
    if (!IsFloating(y.dtype()) && !IsInteger(y.dtype())) {
      return InvalidArgument("Gradients: ", y.name(), " has type ", DataTypeName(y.dtype()),
                             " and must be numeric to obtain a default gradient");
    }
    if (options_.as_in_cpp) return Grad(AddOp("OnesLike", {y}));
    return Grad(Ones(graph_, ShapeTensor(y), y.dtype(), name));
  }
  const DataType type = given.is_slices() ? given.slices().values.dtype() : given.dense().dtype();
  const bool fits = IsComplex(y.dtype()) ? IsComplex(type)
                    : y.dtype() == DT_VARIANT || y.dtype() == DT_RESOURCE
                        ? type != DT_RESOURCE
                        : IsFloating(type) || IsInteger(type);
  if (!fits) {
    return InvalidArgument("Gradient type ", DataTypeName(type), " generated for tensor ", y.name(),
                           " with type ", DataTypeName(y.dtype()),
                           ": both must be real or both complex");
  }
  if (options_.as_in_cpp) return given;
  if (!given.is_slices()) return Grad(AddOp("Identity", {given.dense()}, {}, name));
  IndexedSlices slices = given.slices();
  slices.indices = AddOp("Identity", {slices.indices}, {}, name + "_indices");
  slices.values = AddOp("Identity", {slices.values}, {}, name + "_values");
  if (slices.dense_shape.valid())
    slices.dense_shape = AddOp("Identity", {slices.dense_shape}, {}, name + "_shape");
  return Grad(slices);
}

absl::Status Backprop::Start() {
  for (size_t i = 0; i < ys_.size(); ++i) {
    std::optional<ColocateWith> colocate;
    if (options_.colocate_gradients_with_ops) colocate.emplace(graph_, ys_[i].node);
    WEIR_ASSIGN_OR_RETURN(Grad grad, InitialGrad(static_cast<int>(i)));
    auto& arrived = arrived_[ys_[i].node->id()];
    arrived.resize(ys_[i].node->num_outputs());
    arrived[ys_[i].index].push_back(grad);
  }
  FindLoops();
  WEIR_RETURN_IF_ERROR(graph_.status());
  CountPending();
  for (const Output& y : ys_) {
    if (pending_[y.node->id()] == 0 && Has(y.node, kBetween) && !Has(y.node, kQueued)) {
      Set(y.node, kQueued);
      queue_.push_back(y.node);
    }
  }
  EnqueueExits();
  return absl::OkStatus();
}

// Starts from an Exit whose variable no y depends on, in a loop that has gradients of other
// variables: its gradient is zeros.
void Backprop::StartFromExit(Node* exit) {
  if (!IsTrainable(exit->output().dtype())) return;
  const Output zeros = loops_.ZerosForExit(exit->output());
  auto& arrived = arrived_[exit->id()];
  arrived.resize(exit->num_outputs());
  if (zeros.valid()) arrived[0].push_back(Grad(zeros));
}

// Enqueues the Exits without pending consumers.
void Backprop::EnqueueExits() {
  for (const auto& exits : loops_.exits()) {
    for (Node* exit : exits->all) {
      if (exit->id() >= static_cast<int>(pending_.size()) || pending_[exit->id()] != 0) continue;
      --exits->pending;
      if (!Has(exit, kQueued)) exits->unused.push_back(exit);
    }
    if (exits->pending == 0) {
      for (Node* exit : exits->unused) {
        if (!IsTrainable(exit->output().dtype())) continue;
        StartFromExit(exit);
        queue_.push_back(exit);
      }
    }
    for (const Output& enter : exits->loop->forward()->enters) {
      const int id = enter.node->id();
      if (id < static_cast<int>(pending_.size()) && pending_[id] == 0) pending_[id] = 1;
    }
  }
}

bool Backprop::HasGrads(const Node* node) const {
  const auto& arrived = arrived_[node->id()];
  return std::any_of(arrived.begin(), arrived.end(), [](const Grads& g) { return !g.empty(); });
}

// The Exits of a loop are visited together, once all nodes after the loop have been visited.
void Backprop::EnqueueExit(Node* exit) {
  GradientLoops::Exits* const exits = loops_.ExitsOf(exit);
  if (exits == nullptr) return queue_.push_back(exit);
  exits->deferred.push_back(exit);
  if (--exits->pending > 0) return;
  bool any = false;
  for (Node* e : exits->deferred) {
    if (HasGrads(e)) {
      any = true;
      queue_.push_back(e);
    } else {
      exits->unused.push_back(e);
    }
  }
  for (Node* e : exits->unused) {
    if (any) StartFromExit(e);
    queue_.push_back(e);
  }
}

// Enqueues a node once all its consumers have been visited. A loop's Switch is visited twice: from
// the Exit, and from the next iteration.
void Backprop::Enqueue(Node* node) {
  const int id = node->id();
  if (id >= static_cast<int>(pending_.size())) return;
  --pending_[id];
  if (pending_[id] != 0 && !(pending_[id] > 0 && !loops_.empty() && IsLoopSwitch(node))) return;
  if (IsLoopExit(node)) {
    EnqueueExit(node);
  } else {
    queue_.push_back(node);
  }
}

// A sum is colocated with its first part, regardless of the open scope: the parts come from
// anywhere in the graph.
Grad Backprop::Sum(Node* node, const Grads& parts) {
  if (parts.empty()) return Grad();
  if (parts.size() == 1) return parts[0];
  const bool any_slices =
      std::any_of(parts.begin(), parts.end(), [](const Grad& g) { return g.is_slices(); });
  if (any_slices) return SumWithRows(graph_, parts);
  Outputs dense;
  for (const Grad& part : parts) dense.push_back(part.dense());
  if (options_.aggregation == Aggregation::kTree) {
    const NameScope scope(graph_, node->name() + "_gradient_sum");
    Output sum = dense[0];
    for (size_t i = 1; i < dense.size(); ++i) sum = AddOp("AddN", {Outputs{sum, dense[i]}});
    return Grad(sum);
  }
  const ColocateWith colocate(graph_, dense[0].node, /*ignore_existing=*/true);
  return Grad(AddOp("AddN", {dense}));
}

Grads Backprop::TakeGrads(Node* node) {
  auto& arrived = arrived_[node->id()];
  arrived.resize(node->num_outputs());
  Grads& sums = summed_[node->id()];
  sums.resize(arrived.size());
  for (size_t i = 0; i < arrived.size(); ++i) {
    if (!arrived[i].empty()) sums[i] = Sum(node, arrived[i]);
  }
  std::vector<Grads>().swap(arrived);
  return sums;
}

absl::StatusOr<Grads> Backprop::Differentiate(Node* node, const GradientFn& rule, Grads dys) {
  for (int i = 0; i < node->num_outputs(); ++i) {
    if (!dys[i].none() || !IsTrainable(node->output(i).dtype())) continue;
    const Output& y = node->output(i);
    dys[i] = Grad(loops_.empty() ? ZerosForOutput(y) : loops_.ZerosFor(y));
  }
  std::optional<NameScope> scope;
  if (!options_.as_in_cpp) scope.emplace(graph_, node->name() + "_grad");
  GradContext context(*node, std::move(dys));
  Grads dxs;
  const absl::Status thrown = CatchExceptions("The gradient function", [&] {
    dxs = rule(context);
    return absl::OkStatus();
  });
  if (!thrown.ok()) return Annotate(thrown, node->Label());
  WEIR_RETURN_IF_ERROR(graph_.status());
  if (static_cast<int>(dxs.size()) > node->num_inputs()) {
    return Internal("Num gradients ", dxs.size(), " generated for op ", node->Label(),
                    " do not match num inputs ", node->num_inputs());
  }
  const auto count = std::count_if(dxs.begin(), dxs.end(), [](const Grad& g) { return !g.none(); });
  if (options_.gate_gradients && count > 1) {
    const ColocateWith nowhere(graph_, Operation(), /*ignore_existing=*/true);
    dxs = GateGrads(graph_, dxs);
  }
  return dxs;
}

absl::Status Backprop::PropagateGrads(Node* node, Grads dxs) {
  for (size_t i = 0; i < dxs.size(); ++i) {
    if (dxs[i].none()) continue;
    const Output in = node->input(static_cast<int>(i));
    if (!dxs[i].is_slices() && in.dtype() != DT_RESOURCE) {
      if (absl::Status s = graph_.RefineShape(dxs[i].dense(), in.shape()); !s.ok()) {
        return InvalidArgument(
            "Incompatible shapes between op input and calculated input gradient. Forward "
            "operation: ",
            node->Label(), ". Input index: ", i, ". Original input shape: ", in.shape().ToString(),
            ". Calculated input gradient shape: ", dxs[i].dense().shape().ToString());
      }
    }
    if (in.node->id() >= static_cast<int>(arrived_.size())) continue;
    auto& arrived = arrived_[in.node->id()];
    arrived.resize(in.node->num_outputs());
    arrived[in.index].push_back(dxs[i]);
  }
  return absl::OkStatus();
}

absl::Status Backprop::Visit(Node* node) {
  {
    std::optional<ColocateWith> colocate;
    if (options_.colocate_gradients_with_ops) colocate.emplace(graph_, node);
    Grads dys;
    {
      const GradientLoopScope inside(graph_, loops_.LoopOf(node, /*before=*/true));
      dys = TakeGrads(node);
    }
    const GradientLoopScope inside(graph_, loops_.LoopOf(node, /*before=*/false));
    const bool any = std::any_of(dys.begin(), dys.end(), [](const Grad& g) { return !g.none(); });
    if (any && !Has(node, kStop)) {
      WEIR_ASSIGN_OR_RETURN(const GradientRule rule, RuleOf(*node));
      if (!rule.not_differentiable) {
        if (!*rule.fn) return NoGradient(node);
        WEIR_ASSIGN_OR_RETURN(Grads dxs, Differentiate(node, *rule.fn, std::move(dys)));
        WEIR_RETURN_IF_ERROR(PropagateGrads(node, std::move(dxs)));
      }
    }
  }
  for (const Output& in : node->inputs()) Enqueue(in.node);
  return absl::OkStatus();
}

Grads Backprop::Results() {
  Grads results;
  for (const Output& x : xs_) {
    Grads& sums = summed_[x.node->id()];
    if (sums.empty()) TakeGrads(x.node);
    results.push_back(sums[x.index]);
  }
  return results;
}

absl::StatusOr<Grads> Backprop::Run() {
  WEIR_RETURN_IF_ERROR(Check());
  WEIR_RETURN_IF_ERROR(graph_.status());
  FindNodesBetween();
  Grads results;
  {
    const NameScope scope(graph_, options_.name);
    WEIR_RETURN_IF_ERROR(Start());
    MarkStops();
    while (!queue_.empty()) {
      Node* node = queue_.front();
      queue_.pop_front();
      WEIR_RETURN_IF_ERROR(Visit(node));
    }
    WEIR_RETURN_IF_ERROR(CheckAllVisited());
    loops_.Finish();
    results = Results();
  }
  if (options_.unconnected_gradients == UnconnectedGradients::kZero) {
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].none()) results[i] = Grad(ZerosForOutput(xs_[i]));
    }
  }
  WEIR_RETURN_IF_ERROR(graph_.status());
  return results;
}

// The output is invalid for a partitioned variable, which is an error: take the gradient of each
// part instead.
GradientSource::GradientSource(const Variable& variable)
    : output(HasStorage(variable, "Gradients") ? variable.handle() : Output()) {}

GradientSources::GradientSources(std::initializer_list<GradientSource> sources) {
  for (const GradientSource& source : sources) outputs.push_back(source.output);
}

GradientSources::GradientSources(const std::vector<Variable>& variables) {
  for (const Variable& variable : variables) outputs.push_back(GradientSource(variable).output);
}

Grads Gradients(const Outputs& ys, const GradientSources& xs, const GradientsOptions& options) {
  const Grads none(xs.outputs.size());
  Graph* graph = nullptr;
  for (const Outputs* list : {&ys, &xs.outputs}) {
    for (const Output& o : *list) {
      if (graph == nullptr && o.valid()) graph = &o.graph();
    }
  }
  if (graph == nullptr) return none;
  absl::StatusOr<Grads> grads = Backprop(*graph, ys, xs.outputs, options).Run();
  if (grads.ok()) return *std::move(grads);
  graph->Fail(grads.status());
  return none;
}

Outputs DenseGradients(const Outputs& ys, const GradientSources& xs,
                       const GradientsOptions& options) {
  Outputs dense;
  for (const Grad& grad : Gradients(ys, xs, options)) dense.push_back(DenseGradient(grad));
  return dense;
}

Output DenseGradient(const Grad& grad) {
  if (!grad.is_slices()) return grad.dense();
  return RowsToDense(grad.slices());
}

Output GradContext::dy(int i) { return DenseGradient(dys_[i]); }

}  // namespace weir
