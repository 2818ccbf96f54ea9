#include "weir/ops/gradients.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_join.h"
#include "weir/core/scope.h"
#include "weir/ops/array.h"
#include "weir/ops/function.h"
#include "weir/ops/gradient_loops.h"
#include "weir/ops/gradient_util.h"
#include "weir/ops/partitioned_variable.h"
#include "weir/ops/recovered_flow.h"
#include "weir/ops/variables.h"

namespace weir {

// Reverse-mode differentiation of a graph.
//
// First the nodes that matter are found: those that some x reaches through differentiable tensors
// and that reach some y. They are walked from the ys to the xs. A node waits until every consumer
// of its outputs that matters has been differentiated; then what arrived at each output is summed,
// the rule of its op is asked for the gradients of its inputs, and these are handed on. The walk
// ends at the xs (unless one x depends on another), at nodes whose op is not differentiable, and
// where no gradient arrives.
//
// All of it is a queue and arrays indexed by node id: linear in the part of the graph behind the
// ys, and no recursion, so that chains of a hundred thousand nodes are fine. The order of the walk,
// the scopes and the names of the nodes it makes are those of TensorFlow's tf.gradients, so that
// graphs can be compared node by node.
//
// A path through the outputs of integer or string type carries no gradient. Outputs of a visited
// node that got none, but could have, get zeros, since rules may rely on them.
namespace {

// While it lives, nodes are made in this loop of a gradient, if it is not null.
class InLoop {
 public:
  InLoop(Graph& graph, const GradientLoop* loop) {
    if (loop != nullptr) context_.emplace(FlowStack::Of(graph), loop->backward());
  }

 private:
  std::optional<InContext> context_;
};

class Backprop {
 public:
  Backprop(Graph& graph, const Outputs& ys, const Outputs& xs, const GradientsOptions& options)
      : graph_(graph), ys_(ys), xs_(xs), options_(options), loops_(graph) {}

  absl::StatusOr<Grads> Run();

 private:
  enum Mark : uint8_t { kBehindY = 1, kReached = 2, kBetween = 4, kQueued = 8, kStop = 16 };

  absl::Status Check() const;
  void FindNodesBetween();
  void FindLoops();
  void CountPending();
  void FindStops();
  absl::Status Start();
  absl::StatusOr<Grad> InitialGrad(int i);
  absl::Status Visit(Node* node);
  absl::StatusOr<Grads> Differentiate(Node* node, Grads dys);
  absl::Status HandOn(Node* node, Grads dxs);
  Grads TakeGrads(Node* node);
  void Enqueue(Node* node);
  void EnqueueExits();
  void EnqueueExit(Node* exit);
  void StartFromExit(Node* exit);
  bool HasGrads(const Node* node) const;
  Grad Sum(Node* node, const Grads& parts);
  absl::Status NoGradient(const Node* node) const;
  std::vector<std::string> PathTo(const Node* from, const std::function<bool(const Node*)>& done,
                                  bool towards_ys) const;
  absl::Status CheckAllVisited() const;
  Grads Results();

  bool Has(const Node* node, Mark mark) const { return (marks_[node->id()] & mark) != 0; }
  void Set(const Node* node, Mark mark) { marks_[node->id()] |= mark; }

  Graph& graph_;
  const Outputs& ys_;
  const Outputs& xs_;
  const GradientsOptions& options_;
  std::vector<uint8_t> marks_;
  std::vector<int> pending_;  // consumers between that have not been visited, by node id
  std::vector<Node*> between_;
  std::vector<std::vector<Grads>> arrived_;  // by node id and output
  std::vector<std::vector<Grad>> summed_;    // the same once the node was visited
  std::deque<Node*> queue_;
  GradientLoops loops_;
};

absl::Status Backprop::Check() const {
  if (!options_.grad_ys.empty() && options_.grad_ys.size() != ys_.size()) {
    return InvalidArgument("Gradients: length mismatch, ", options_.grad_ys.size(), " grad_ys for ",
                           ys_.size(), " ys");
  }
  for (const Outputs* list : {&ys_, &xs_, &options_.stop_gradients.outputs}) {
    for (const Output& o : *list) {
      if (!o)
        return InvalidArgument("Gradients: an invalid output was given (did a builder fail?)");
      if (&o.graph() != &graph_)
        return InvalidArgument("Gradients: ", o.name(), " belongs to another graph");
    }
  }
  return absl::OkStatus();
}

// Backwards from the ys, so that the cost is that of their part of the graph; then forwards from
// the xs inside of it.
void Backprop::FindNodesBetween() {
  const int num_nodes = graph_.num_nodes();
  marks_.assign(num_nodes, 0);
  pending_.assign(num_nodes, 0);
  arrived_.resize(num_nodes);
  summed_.resize(num_nodes);
  std::vector<Node*> behind;
  const auto add = [&](Node* node) {
    if (Has(node, kBehindY)) return;
    Set(node, kBehindY);
    behind.push_back(node);
  };
  for (const Output& y : ys_) add(y.node);
  for (size_t i = 0; i < behind.size(); ++i) {
    for (const Output& in : behind[i]->inputs()) add(in.node);
  }

  // The consumers of node i are consumers[first[i]] to consumers[first[i + 1] - 1].
  std::vector<int> first(num_nodes + 2, 0);
  const auto for_each_edge = [&](const auto& fn) {
    for (Node* node : behind) {
      for (const Output& in : node->inputs()) {
        if (IsTrainable(in.dtype())) fn(in.node->id(), node);
      }
    }
  };
  for_each_edge([&](int from, Node*) { ++first[from + 2]; });
  for (int i = 2; i < num_nodes + 2; ++i) first[i] += first[i - 1];
  std::vector<Node*> consumers(first[num_nodes + 1]);
  for_each_edge([&](int from, Node* to) { consumers[first[from + 1]++] = to; });

  std::vector<Node*> reached;
  const auto reach = [&](Node* node) {
    if (!Has(node, kBehindY) || Has(node, kReached)) return;
    Set(node, kReached);
    reached.push_back(node);
  };
  for (const Output& x : xs_) reach(x.node);
  for (size_t i = 0; i < reached.size(); ++i) {
    const int id = reached[i]->id();
    for (int k = first[id]; k < first[id + 1]; ++k) reach(consumers[k]);
  }

  const auto between = [&](Node* node) {
    if (!Has(node, kReached) || Has(node, kBetween)) return;
    Set(node, kBetween);
    between_.push_back(node);
  };
  for (const Output& y : ys_) between(y.node);
  for (size_t i = 0; i < between_.size(); ++i) {
    for (const Output& in : between_[i]->inputs()) between(in.node);
  }
}

// All variables of a loop are gone back through if one is.
void Backprop::FindLoops() {
  const FlowStack& stack = FlowStack::Of(graph_);
  if (std::any_of(between_.begin(), between_.end(), [&stack](const Node* node) {
        return IsLoopExit(node) && stack.ContextOf(node) == nullptr;
      })) {
    RecoverFlow(graph_);
  }
  for (size_t i = 0; i < between_.size(); ++i) {
    if (!IsLoopExit(between_[i])) continue;
    std::optional<ColocateWith> colocate;
    if (options_.colocate_gradients_with_ops) colocate.emplace(graph_, between_[i]);
    for (Node* exit : loops_.Add(between_[i])) {
      if (exit->id() >= static_cast<int>(marks_.size()) || Has(exit, kBetween)) continue;
      Set(exit, kBetween);
      between_.push_back(exit);
    }
  }
}

void Backprop::CountPending() {
  for (const Node* node : between_) {
    for (const Output& in : node->inputs()) {
      if (Has(in.node, kBetween)) ++pending_[in.node->id()];
    }
  }
}

// An x is where the walk ends, unless it depends on another x itself.
void Backprop::FindStops() {
  for (const Output& x : xs_) {
    const auto inputs = x.node->inputs();
    const bool depends_on_x = std::any_of(inputs.begin(), inputs.end(), [&](const Output& in) {
      return pending_[in.node->id()] > 0;
    });
    if (!depends_on_x) Set(x.node, kStop);
  }
  for (const Output& stop : options_.stop_gradients.outputs) Set(stop.node, kStop);
}

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
  if (!given.is_slices()) return Grad(AddOp("Identity", {given.dense()}, {}, name));
  IndexedSlices slices = given.slices();
  slices.indices = AddOp("Identity", {slices.indices}, {}, name + "_indices");
  slices.values = AddOp("Identity", {slices.values}, {}, name + "_values");
  if (slices.dense_shape)
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

// Zeros for the Exit of a variable that nothing depends on, of a loop that has gradients of others.
void Backprop::StartFromExit(Node* exit) {
  if (!IsTrainable(exit->output().dtype())) return;
  const Output zeros = loops_.ZerosForExit(exit->output());
  auto& arrived = arrived_[exit->id()];
  arrived.resize(exit->num_outputs());
  if (zeros) arrived[0].push_back(Grad(zeros));
}

// The Exits that wait for nobody.
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

// The Exits of a loop are visited together, when all that follows the loop has been.
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

// A node whose consumers have all been visited. A loop's Switch is visited twice: from the Exit,
// and from the iteration.
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

// A sum is placed with its first part, whatever scope is open: the parts come from all over the
// graph.
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

// The record of a function that a node calls as its op has no rule of its own.
const GradientFn& RuleOf(const Node& node) {
  static const GradientFn* const call = new GradientFn(CallGradient);
  return node.op().is_function() ? *call : node.op().gradient_fn();
}

absl::StatusOr<Grads> Backprop::Differentiate(Node* node, Grads dys) {
  for (int i = 0; i < node->num_outputs(); ++i) {
    if (!dys[i].none() || !IsTrainable(node->output(i).dtype())) continue;
    const Output& y = node->output(i);
    dys[i] = Grad(loops_.empty() ? ZerosForOutput(y) : loops_.ZerosFor(y));
  }
  const NameScope scope(graph_, node->name() + "_grad");
  GradContext context(*node, std::move(dys));
  Grads dxs = RuleOf(*node)(context);
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

absl::Status Backprop::HandOn(Node* node, Grads dxs) {
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
      const InLoop inside(graph_, loops_.Of(node, /*before=*/true));
      dys = TakeGrads(node);
    }
    const InLoop inside(graph_, loops_.Of(node, /*before=*/false));
    const bool any = std::any_of(dys.begin(), dys.end(), [](const Grad& g) { return !g.none(); });
    if (any && !Has(node, kStop) && !node->op().not_differentiable()) {
      if (!RuleOf(*node)) return NoGradient(node);
      WEIR_ASSIGN_OR_RETURN(Grads dxs, Differentiate(node, std::move(dys)));
      WEIR_RETURN_IF_ERROR(HandOn(node, std::move(dxs)));
    }
  }
  for (const Output& in : node->inputs()) Enqueue(in.node);
  return absl::OkStatus();
}

// Names on a shortest way from `from` to a node that satisfies `done`, along the nodes between.
std::vector<std::string> Backprop::PathTo(const Node* from,
                                          const std::function<bool(const Node*)>& done,
                                          bool towards_ys) const {
  absl::flat_hash_map<const Node*, std::vector<const Node*>> edges;
  for (const Node* node : between_) {
    for (const Output& in : node->inputs()) {
      if (!Has(in.node, kBetween)) continue;
      if (towards_ys) {
        edges[in.node].push_back(node);
      } else {
        edges[node].push_back(in.node);
      }
    }
  }
  absl::flat_hash_map<const Node*, const Node*> came_from{{from, nullptr}};
  std::deque<const Node*> queue{from};
  while (!queue.empty()) {
    const Node* node = queue.front();
    queue.pop_front();
    if (done(node)) {
      std::vector<std::string> names;
      for (; node != nullptr; node = came_from[node]) names.push_back(node->name());
      return names;
    }
    for (const Node* next : edges[node]) {
      if (came_from.try_emplace(next, node).second) queue.push_back(next);
    }
  }
  return {from->name()};
}

absl::Status Backprop::NoGradient(const Node* node) const {
  const auto is_one_of = [](const Outputs& list) {
    return [&list](const Node* n) {
      return std::any_of(list.begin(), list.end(), [&](const Output& o) { return o.node == n; });
    };
  };
  std::vector<std::string> path = PathTo(node, is_one_of(ys_), /*towards_ys=*/true);
  std::vector<std::string> to_x = PathTo(node, is_one_of(xs_), /*towards_ys=*/false);
  path.insert(path.end(), to_x.rbegin() + 1, to_x.rend());
  constexpr size_t kShown = 12;
  if (path.size() > kShown) path.erase(path.begin() + kShown / 2, path.end() - kShown / 2);
  return Unimplemented(
      "No gradient defined for operation '", node->name(), "' (op type: ", node->op_name(),
      "), which lies between ys and xs: ", absl::StrJoin(path, " <- "),
      ". Insert StopGradient to take it as a constant, or give its op a gradient rule.");
}

// Only a cycle can keep nodes waiting for each other: a loop whose structure is not known.
absl::Status Backprop::CheckAllVisited() const {
  if (!loops_.empty()) return absl::OkStatus();
  for (const Node* node : between_) {
    if (pending_[node->id()] > 0) {
      return Unimplemented(
          "Gradients of a value inside a loop are not defined: '", node->name(),
          "' (op type: ", node->op_name(),
          ") lies on a cycle between ys and xs. Take them of what leaves the loop, by its Exit.");
    }
  }
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
    FindStops();
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

}  // namespace

// Null for a partitioned variable, which is an error: its gradient is that of each part.
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
      if (graph == nullptr && o) graph = &o.graph();
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
