#include "weir/session/plan.h"

#include <queue>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "weir/core/float_mode.h"
#include "weir/session/passes.h"

namespace weir {

namespace {

// Chooses the order, partitions tasks, assigns slots and memory.
absl::StatusOr<std::unique_ptr<const Plan>> Lower(PlanGraph graph,
                                                  absl::Span<const Shape> feed_shapes,
                                                  const PlanEnvironment& env) {
  auto plan = std::make_unique<Plan>();
  plan->feed_shapes.assign(feed_shapes.begin(), feed_shapes.end());
  plan->graphs = graph.graphs;
  plan->graphs.push_back(graph.internal_graph);
  WEIR_RETURN_IF_ERROR(Schedule(std::move(graph), env, plan.get()));
  return std::unique_ptr<const Plan>(std::move(plan));
}

}  // namespace

absl::StatusOr<PlanGraph> PreparePlan(const PlanRequest& request, const PlanEnvironment& env) {
  PlanGraph plan;
  WEIR_RETURN_IF_ERROR(RunPasses(Phase::kPrepare, Phase::kPrepare, plan, {env, {}, &request}));
  return plan;
}

absl::StatusOr<std::unique_ptr<const Plan>> CompilePlan(PlanGraph graph,
                                                        absl::Span<const Shape> feed_shapes,
                                                        const PlanEnvironment& env) {
  const FloatMode now = FloatMode::Current();  // folded constants equal the results of the step
  const ScopedFloatMode mode(env.options.flush_subnormals ? now.Flushing() : now);
  WEIR_RETURN_IF_ERROR(RunPasses(Phase::kOptimize, Phase::kFuse, graph, {env, feed_shapes}));
  return Lower(std::move(graph), feed_shapes, env);
}

absl::StatusOr<std::unique_ptr<const Plan>> CompileSubplan(PlanGraph graph,
                                                           absl::Span<const Shape> feed_shapes,
                                                           PlanEnvironment env) {
  env.is_subplan = true;
  WEIR_RETURN_IF_ERROR(RunPasses(Phase::kFuse, Phase::kFuse, graph, {env, feed_shapes}));
  return Lower(std::move(graph), feed_shapes, env);
}

const OpTraits& PlanNode::traits() const {
  static const OpTraits* const none = new OpTraits;
  return kind == Kind::kOp ? node->op().traits() : *none;
}

int PlanGraph::Add(PlanNode node) {
  nodes.push_back(std::move(node));
  ++changes.added;
  return static_cast<int>(nodes.size()) - 1;
}

void PlanGraph::Remove(int node) {
  MarkRemoved(node);
  nodes[node].DropEdges();
}

void PlanGraph::Fuse(int node) {
  changes.fused += nodes[node].removed ? 0 : 1;
  nodes[node].removed = true;
  nodes[node].DropEdges();
}

void PlanGraph::MarkRemoved(int node) {
  changes.removed += nodes[node].removed ? 0 : 1;
  nodes[node].removed = true;
}

int PlanGraph::NumNodes() const {
  return static_cast<int>(absl::c_count_if(nodes, [](const PlanNode& n) { return !n.removed; }));
}

namespace {

bool IsTopologicallyOrdered(const PlanGraph& plan) {
  for (int i = 0; i < static_cast<int>(plan.nodes.size()); ++i) {
    const PlanNode& n = plan.nodes[i];
    if (absl::c_any_of(n.inputs, [i](const PlanValue& v) { return v.node >= i; })) return false;
    if (absl::c_any_of(n.controls, [i](int control) { return control >= i; })) return false;
  }
  return true;
}

// `renumbered`: by node, its index in the new order.
void Renumber(PlanGraph& plan, const std::vector<int>& renumbered) {
  const auto renumber = [&](PlanValue& v) {
    if (v.node >= 0) v.node = renumbered[v.node];
  };
  for (PlanNode& n : plan.nodes) {
    for (PlanValue& v : n.inputs) renumber(v);
    for (int& control : n.controls) control = renumbered[control];
  }
  for (PlanValue& v : plan.feeds) renumber(v);
  for (PlanValue& v : plan.fetches) renumber(v);
  for (int& target : plan.targets) target = renumbered[target];
  for (PlanGraph::Carry& c : plan.carries) {
    c.carry = renumbered[c.carry];
    renumber(c.next);
  }
  for (PlanLoop& loop : plan.loops) {
    if (loop.is_structured()) loop.condition = renumbered[loop.condition];
  }
}

}  // namespace

void DropRemoved(PlanGraph& plan) {
  std::vector<int> renumbered(plan.nodes.size(), -1);
  size_t kept = 0;
  std::erase_if(plan.carries,
                [&](const PlanGraph::Carry& c) { return plan.nodes[c.carry].removed; });
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.nodes[i].removed) continue;
    renumbered[i] = static_cast<int>(kept);
    if (kept != i) plan.nodes[kept] = std::move(plan.nodes[i]);
    ++kept;
  }
  plan.nodes.resize(kept);
  Renumber(plan, renumbered);
}

void ReorderNodes(PlanGraph& plan, absl::Span<const int> order) {
  std::vector<PlanNode> nodes;
  nodes.reserve(order.size());
  std::vector<int> renumbered(order.size());
  for (const int i : order) {
    renumbered[i] = static_cast<int>(nodes.size());
    nodes.push_back(std::move(plan.nodes[i]));
  }
  plan.nodes = std::move(nodes);
  Renumber(plan, renumbered);
}

namespace {

// Returns the nodes of a cycle that `node` is on or depends on: "a (Add) <- b (Mul) <- a (Add)".
// `pending`: by node, how many of its predecessors have not been sorted.
std::string DescribeCycle(const PlanGraph& plan, const std::vector<int>& pending, int node) {
  std::vector<int> path;
  const auto waits = [&](int before) { return pending[before] > 0; };
  while (!absl::c_linear_search(path, node)) {
    path.push_back(node);
    const PlanNode& n = plan.nodes[node];
    const auto input = absl::c_find_if(n.inputs, [&](const PlanValue& v) { return waits(v.node); });
    node = input != n.inputs.end() ? input->node : *absl::c_find_if(n.controls, waits);
  }
  path.erase(path.begin(), absl::c_find(path, node));
  path.push_back(node);
  return absl::StrJoin(path, " <- ", [&](std::string* out, int i) {
    absl::StrAppend(out, plan.nodes[i].node->Label());
  });
}

}  // namespace

// Kahn's algorithm, lowest number first.
absl::Status SortTopologically(PlanGraph& plan) {
  if (IsTopologicallyOrdered(plan)) return absl::OkStatus();
  const int count = static_cast<int>(plan.nodes.size());
  std::vector<int> pending(count, 0);
  std::vector<IndexList> successors(count);
  for (int i = 0; i < count; ++i) {
    const auto depend = [&](int on) {
      ++pending[i];
      successors[on].push_back(i);
    };
    for (const PlanValue& v : plan.nodes[i].inputs) depend(v.node);
    for (const int control : plan.nodes[i].controls) depend(control);
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < count; ++i) {
    if (pending[i] == 0) ready.push(i);
  }
  std::vector<int> sorted;
  sorted.reserve(count);
  while (!ready.empty()) {
    const int i = ready.top();
    ready.pop();
    sorted.push_back(i);
    for (const int s : successors[i]) {
      if (--pending[s] == 0) ready.push(s);
    }
  }
  for (int i = 0; i < count; ++i) {
    if (pending[i] > 0)
      return InvalidArgument("graph has a cycle: ", DescribeCycle(plan, pending, i));
  }
  ReorderNodes(plan, sorted);
  return absl::OkStatus();
}

}  // namespace weir
