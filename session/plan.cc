#include "weir/session/plan.h"

#include <queue>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "weir/core/float_mode.h"
#include "weir/session/unknown_ops.h"

// The driver of all passes: what happens to a graph before it runs.
namespace weir {

const std::set<std::string>& OptimizationNames() {
  static const auto* const names = new std::set<std::string>{"algebraic_simplification",
                                                             "tile_batch",
                                                             "common_subexpression_elimination",
                                                             "constant_folding",
                                                             "fast_algorithms",
                                                             "fusion",
                                                             "in_place",
                                                             "inline_functions",
                                                             "cache_step_invariants",
                                                             "plan_memory",
                                                             "prune_control_edges",
                                                             "no_ops",
                                                             "partition_tasks",
                                                             "structure_loops",
                                                             "eliminate_dead_nodes"};
  return *names;
}

absl::Status CheckOptimizations(const std::set<std::string>& names) {
  for (const std::string& name : names) {
    if (OptimizationNames().contains(name)) continue;
    return InvalidArgument("unknown optimization '", name,
                           "'; valid names: ", absl::StrJoin(OptimizationNames(), ", "));
  }
  return absl::OkStatus();
}

absl::StatusOr<PlanGraph> PreparePlan(const PlanRequest& request, const PlanEnvironment& env) {
  WEIR_ASSIGN_OR_RETURN(PlanGraph plan, Prune(request, env.graph));
  WEIR_RETURN_IF_ERROR(FindLoops(plan));
  WEIR_RETURN_IF_ERROR(Place(plan, env));
  WEIR_RETURN_IF_ERROR(OrderInitializers(plan));
  WEIR_RETURN_IF_ERROR(OrderReads(plan, env));
  InsertReads(plan);
  InsertCopies(plan, env);
  WEIR_RETURN_IF_ERROR(SortTopologically(plan));
  AnalyzeDeadness(plan);
  WEIR_RETURN_IF_ERROR(CheckUnknownOps(plan));
  if (env.options.forbid_races) WEIR_RETURN_IF_ERROR(CheckRaces(plan));
  HoistConstants(plan);
  return plan;
}

absl::StatusOr<std::unique_ptr<const Plan>> CompilePlan(PlanGraph graph,
                                                        absl::Span<const Shape> feed_shapes,
                                                        const PlanEnvironment& env) {
  const FloatMode now = FloatMode::Current();  // folded constants equal the results of the step
  const ScopedFloatMode mode(env.options.flush_subnormals ? now.Flushing() : now);
  if (env.enabled("structure_loops")) StructureLoops(graph);
  if (env.enabled("inline_functions")) WEIR_RETURN_IF_ERROR(InlineFunctions(graph, env));
  WEIR_RETURN_IF_ERROR(CheckUnknownOps(graph));  // again, now with inlined functions
  WEIR_RETURN_IF_ERROR(Specialize(graph, feed_shapes, env));
  if (env.enabled("prune_control_edges"))
    PruneControlEdges(graph, FindControlledConstants(graph, feed_shapes, env));
  Simplify(graph, env);
  EliminateDeadNodes(graph, env);
  if (env.enabled("cache_step_invariants")) WEIR_RETURN_IF_ERROR(CacheStepInvariants(graph, env));
  if (env.enabled("tile_batch")) WEIR_RETURN_IF_ERROR(TileBatch(graph, env));
  return FinishPlan(std::move(graph), feed_shapes, env);
}

absl::StatusOr<std::unique_ptr<const Plan>> FinishPlan(PlanGraph graph,
                                                       absl::Span<const Shape> feed_shapes,
                                                       const PlanEnvironment& env) {
  auto plan = std::make_unique<Plan>();
  plan->feed_shapes.assign(feed_shapes.begin(), feed_shapes.end());
  if (env.enabled("fusion")) {
    WEIR_RETURN_IF_ERROR(FuseScalarLoops(graph, env));
    WEIR_RETURN_IF_ERROR(Fuse(graph, env));
  }
  plan->graphs = graph.graphs;
  plan->graphs.push_back(graph.internal_graph);
  WEIR_RETURN_IF_ERROR(Schedule(std::move(graph), env, plan.get()));
  return std::unique_ptr<const Plan>(std::move(plan));
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
