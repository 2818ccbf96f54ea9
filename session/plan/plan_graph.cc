#include "weir/session/plan/plan_graph.h"

#include <functional>
#include <queue>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "weir/session/plan/place.h"
#include "weir/session/plan/plan_uses.h"

namespace weir {

const OpTraits& PlanNode::traits() const {
  static const OpTraits* const none = new OpTraits;
  return kind == Kind::kOp ? node->op().traits() : *none;
}

bool PlanNode::is_host_input(int input) const {
  return def != nullptr && IsHostArgument(*def, *node, input, true);
}
bool PlanNode::is_host_output(int output) const {
  return def != nullptr && IsHostArgument(*def, *node, output, false);
}
bool PlanNode::is_on_accelerator(int output) const {
  const DataType t = type(output);
  return kind != Kind::kFeed && !device->is_host() && IsPlain(t) && !IsRef(t) &&
         !is_host_output(output);
}

bool PlanNode::runs() const {
  return !removed && kind != Kind::kFeed && kind != Kind::kCarry && !is_constant(0);
}

bool PlanNode::is_enter() const { return loop != value_loop && Is(ControlFlow::kEnter); }

bool PlanNode::is_exit() const { return loop != value_loop && Is(ControlFlow::kExit); }

// The values of feeds, reads and copies are no references, whatever their node says.
DataType PlanGraph::TypeOf(const PlanValue& v) const {
  const PlanNode& n = nodes[v.node];
  const bool is_declared_type = n.kind == PlanNode::Kind::kOp || n.kind == PlanNode::Kind::kCarry;
  return is_declared_type ? n.type(v.output) : BaseType(n.type(0));
}

int PlanGraph::Insert(PlanNode node) {
  nodes.push_back(std::move(node));
  ++changes.added;
  return static_cast<int>(nodes.size()) - 1;
}

void PlanGraph::Erase(int node) {
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

void PlanGraph::EraseUnused(std::vector<int> candidates) {
  std::vector<int> num_uses(nodes.size(), 0);
  const auto count = [&](const PlanNode& n, int by) {
    for (const PlanValue& v : n.inputs) num_uses[v.node] += by;
    for (const int control : n.controls) num_uses[control] += by;
  };
  for (const PlanNode& n : nodes) count(n, 1);
  for (const PlanValue& v : fetches) ++num_uses[v.node];
  for (const int target : targets) ++num_uses[target];
  for (const Carry& c : carries) ++num_uses[c.next.node];
  absl::c_sort(candidates, std::greater<>());
  for (const int node : candidates) {
    if (nodes[node].removed || num_uses[node] > 0) continue;
    count(nodes[node], -1);
    Erase(node);
  }
}

void PlanGraph::ReplaceAllUses(const PlanValue& from, const PlanValue& to) {
  ForEachUse([&](PlanValue& v) {
    if (v == from) v = to;
  });
}

int PlanGraph::NumNodes() const {
  return static_cast<int>(absl::c_count_if(nodes, [](const PlanNode& n) { return !n.removed; }));
}

// ---- loops

bool PlanGraph::IsLoopVariable(const PlanNode& node) const {
  return node.is_enter() && node.value_loop >= 0 && loops[node.value_loop].is_structured() &&
         !node.node->attr<bool>("is_constant");
}

int PlanGraph::ExitedLoop(const PlanNode& variable, const PlanNode& user) const {
  return !IsLoopVariable(variable) || IsInside(user.loop, variable.value_loop)
             ? -1
             : variable.value_loop;
}

// In all of these functions outer loops have smaller indices.
bool PlanGraph::IsInside(int loop, int outer) const {
  while (loop > outer) loop = loops[loop].parent;
  return loop == outer;
}

int PlanGraph::CommonLoop(int a, int b) const {
  while (a != b) {
    int& inner = a > b ? a : b;
    inner = loops[inner].parent;
  }
  return a;
}

int PlanGraph::OutermostLoopExcluding(int node, int loop) const {
  int outermost = -1;
  for (int l = nodes[node].loop; l >= 0; l = loops[l].parent) {
    if (!IsInside(loop, l)) outermost = l;
  }
  return outermost;
}

bool StartsIteration(const PlanGraph& plan, const PlanNode& node) {
  bool takes_carry = false;
  for (const PlanValue& v : node.inputs) {
    const PlanNode& in = plan.nodes[v.node];
    if (in.kind == PlanNode::Kind::kCarry) {
      takes_carry = true;
    } else if (in.loop == node.loop) {
      return false;
    }
  }
  return takes_carry && node.controls.empty();
}

// ---- step-invariant values

PlanGraph::Flags PlanGraph::StepInvariantsOf(absl::Span<const PlanValue> inputs) const {
  Flags step_invariants;
  for (const PlanValue& v : inputs) step_invariants.push_back(IsStepInvariant(v));
  return step_invariants;
}

bool PlanGraph::IsStepInvariant(PlanValue value) const {
  // Python puts two or three Identities before a value. The limit avoids following a chain of
  // thousands from each of its nodes.
  constexpr int kMaxIdentities = 64;
  for (int passed = 0; passed < kMaxIdentities; ++passed) {
    const PlanNode& n = nodes[value.node];
    if (n.is_constant(value.output) || n.is_const()) return true;
    if (n.kind == PlanNode::Kind::kRead || n.Is(VariableUse::kReads)) {
      // A variable of the graph, or one that a function's arguments name.
      const PlanNode& variable = nodes[n.inputs[0].node];
      return !writes_state &&
             (variable.is_constant(n.inputs[0].output) || variable.kind == PlanNode::Kind::kFeed);
    }
    if (!n.is_identity()) return n.step_invariant;
    value = n.inputs[0];
  }
  return false;
}

// ---- order

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
  plan.ForEachUse(renumber);
  plan.ForEachWait([&](int& node) { node = renumbered[node]; });
  for (PlanValue& v : plan.feeds) renumber(v);
  for (PlanGraph::Carry& c : plan.carries) c.carry = renumbered[c.carry];
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
  const PlanUses uses(plan);
  std::vector<int> pending(count);
  for (int i = 0; i < count; ++i)
    pending[i] = static_cast<int>(plan.nodes[i].inputs.size() + plan.nodes[i].controls.size());
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
    for (const PlanUse& use : uses.Of(i)) {
      if (use.is_edge() && --pending[use.user] == 0) ready.push(use.user);
    }
  }
  for (int i = 0; i < count; ++i) {
    if (pending[i] > 0)
      return InvalidArgument("graph has a cycle: ", DescribeCycle(plan, pending, i));
  }
  ReorderNodes(plan, sorted);
  return absl::OkStatus();
}

absl::Status CycleThroughLoop(const PlanNode& n) {
  return InvalidArgument("Node ", n.node->Label(),
                         " is part of a cycle through a while loop: a value that enters the loop "
                         "must not depend on a value that leaves it");
}

}  // namespace weir
