#include "weir/session/runtime/uninitialized.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "weir/kernels/lib/variable_access.h"
#include "weir/session/plan/variable_use.h"

namespace weir {

std::shared_ptr<RestoredCheckpoint> RestoredCheckpoint::Of(ResourceMap& resources) {
  return SharedState(resources).LookupOrCreate<RestoredCheckpoint>(
      "", "restored", [] { return std::make_shared<RestoredCheckpoint>(); });
}

void RestoredCheckpoint::Set(std::string path,
                             std::shared_ptr<const std::vector<std::string>> variables) {
  const MutexLock lock(mutex_);
  path_ = std::move(path);
  variables_ = std::move(variables);
}

std::string RestoredCheckpoint::Lacking(const std::string& variable) const {
  const MutexLock lock(mutex_);
  const bool has_value = variables_ != nullptr && std::find(variables_->begin(), variables_->end(),
                                                            variable) != variables_->end();
  return has_value ? "" : path_;
}

namespace {

// Returns true for ops that accept a variable without a value.
bool NeedsNoValue(const PlanNode& n) {
  if (n.kind != PlanNode::Kind::kOp) return false;
  return n.Is(VariableUse::kTests) || n.Is(VariableUse::kDestroys);
}

// Returns all nodes on which node `id` depends.
absl::flat_hash_set<int> DependenciesOf(const PlanGraph& plan, int id) {
  absl::flat_hash_set<int> seen;
  std::vector<int> stack = {id};
  while (!stack.empty()) {
    const PlanNode& n = plan.nodes[stack.back()];
    stack.pop_back();
    for (const PlanValue& v : n.inputs) {
      if (seen.insert(v.node).second) stack.push_back(v.node);
    }
    for (const int control : n.controls) {
      if (seen.insert(control).second) stack.push_back(control);
    }
  }
  return seen;
}

// Returns whether an error names this node, or the node for which a pass has inserted it.
bool IsNamed(const PlanGraph& plan, int id, const absl::Status& error) {
  const auto named = [&](const Node& node) {
    return absl::StrContains(error.message(), absl::StrCat("(node ", node.name(), ")")) ||
           absl::StrContains(error.message(), absl::StrCat("(node ", node.name(), ","));
  };
  if (plan.nodes[id].kind == PlanNode::Kind::kOp) return named(*plan.nodes[id].node);
  return std::any_of(plan.nodes.begin(), plan.nodes.end(), [&](const PlanNode& user) {
    return user.kind == PlanNode::Kind::kOp && named(*user.node) &&
           std::any_of(user.inputs.begin(), user.inputs.end(),
                       [&](const PlanValue& v) { return v.node == id; });
  });
}

// Returns the variables without a value whose value the step reads. Excludes variables that the
// step assigns first, and those read only in a branch or a loop, which may not run, unless the
// error came from there.
std::vector<const Node*> MissingVariables(const absl::Status& error, const PlanGraph& plan,
                                          ResourceMap& resources) {
  const std::vector<VariableAccess> accesses = FindAccesses(plan, FindVariables(plan));
  absl::flat_hash_map<int, std::vector<int>> assigned_by;
  for (const VariableAccess& access : accesses) {
    if (access.kind == VariableAccess::Kind::kAssign)
      assigned_by[access.variable].push_back(access.node);
  }
  std::vector<const Node*> missing;
  absl::flat_hash_set<int> done;
  for (const VariableAccess& access : accesses) {
    const PlanNode& variable = plan.nodes[access.variable];
    const PlanNode& reader = plan.nodes[access.node];
    if (access.kind == VariableAccess::Kind::kAssign || !IsVariable(variable) ||
        NeedsNoValue(reader) || done.contains(access.variable) ||
        (reader.may_be_dead && !IsNamed(plan, access.node, error)))
      continue;
    const auto [container, name] = VariableKey(*variable.node);
    const auto state = SharedState(resources).Lookup<VariableState>(container, name);
    if (state != nullptr && state->IsInitialized()) continue;
    if (const auto assigns = assigned_by.find(access.variable); assigns != assigned_by.end()) {
      const absl::flat_hash_set<int> before = DependenciesOf(plan, access.node);
      if (std::any_of(assigns->second.begin(), assigns->second.end(),
                      [&](int assign) { return before.contains(assign); }))
        continue;
    }
    done.insert(access.variable);
    missing.push_back(variable.node);
  }
  return missing;
}

// An initializer is recognized only by TensorFlow's name for it.
const Node* InitializerOf(const Graph& graph, const Node& variable) {
  const Node* assign = graph.FindNode(variable.name() + "/Assign");
  const bool fits =
      assign != nullptr && assign->num_inputs() > 0 && assign->input(0).node == &variable;
  return fits ? assign : nullptr;
}

}  // namespace

absl::Status NameUninitialized(const absl::Status& error, const Graph& graph,
                               absl::FunctionRef<absl::StatusOr<PlanGraph>()> prepare,
                               ResourceMap& resources) {
  if (!absl::IsFailedPrecondition(error) || !absl::StrContains(error.message(), "uninitialized"))
    return error;
  const absl::StatusOr<PlanGraph> plan = prepare();
  if (!plan.ok()) return error;
  const std::vector<const Node*> missing = MissingVariables(error, *plan, resources);
  if (missing.empty()) return error;
  const auto restored = RestoredCheckpoint::Of(resources);
  std::vector<std::string> lines;
  for (const Node* variable : missing) {
    const Node* initializer = InitializerOf(graph, *variable);
    const std::string path = restored->Lacking(variable->name());
    lines.push_back(absl::StrCat(
        variable->name(), " (",
        initializer != nullptr ? absl::StrCat("its initializer is ", initializer->name())
                               : "the graph has no initializer for it",
        path.empty() ? "" : absl::StrCat("; not restored from checkpoint ", path), ")"));
  }
  absl::Status named = FailedPrecondition(
      error.message(),
      "\nUninitialized variables that the step reads: ", absl::StrJoin(lines, ", "));
  error.ForEachPayload([&named](absl::string_view url, const absl::Cord& payload) {
    named.SetPayload(url, payload);
  });
  return named;
}

}  // namespace weir
