// A variable's initial value that reads another variable. TensorFlow runs initializers in any
// order, so it rewrites the value for ref variables: each variable v that the value reads becomes
//     cond(is_variable_initialized(v), read(v), v's initial value)
// and the nodes between v and the value are copied on top of that, named "<node>_<new variable>".
// Weir's sessions order initializers themselves and do not need this rewrite; the graph is the same
// so that TensorFlow can run it too. Resource variables are not rewritten, as in TensorFlow.
//
// The traversal starts at the initial value and visits its inputs in post-order, without recursion,
// because graphs may be deep. It stops at variables and at nodes that are safe on an uninitialized
// variable. A value that contains a cycle (a loop) is not rewritten.

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_replace.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/partitioned_variable.h"
#include "weir/ops/framework/variable_store.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/collections.h"

namespace weir {

namespace {

bool IsRefStorage(const Node& n) {
  return n.op_name() == "VariableV2" || n.op_name() == "Variable";
}

bool IsBoundary(const Node& n) {
  const std::string& op = n.op_name();
  return IsRefStorage(n) || op == "IsVariableInitialized" || op == "VarIsInitializedOp" ||
         op == "ReadVariableOp" || op == "VarHandleOp" || op == "If";
}

// Returns the nodes that `root` is computed from, inputs first. Returns an empty vector if there is
// a cycle.
std::vector<Node*> PostOrder(Node* root) {
  enum State : char { kOpen = 1, kDone };
  absl::flat_hash_map<Node*, State> states;
  std::vector<Node*> order;
  std::vector<std::pair<Node*, int>> stack = {{root, 0}};
  states[root] = kOpen;
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (next == node->num_inputs() || IsBoundary(*node)) {
      states[node] = kDone;
      order.push_back(node);
      stack.pop_back();
      continue;
    }
    Node* input = node->input(next++).node;
    const auto [it, is_new] = states.try_emplace(input, kOpen);
    if (is_new) {
      stack.emplace_back(input, 0);
    } else if (it->second == kOpen) {
      return {};
    }
  }
  return order;
}

Variable ListedVariable(Graph& g, const Node* storage) {
  for (const char* key : {collections::kGlobalVariables, collections::kLocalVariables}) {
    for (const Variable& v : VariablesIn(g, key)) {
      if (v.handle().node == storage) return v;
    }
  }
  return {};
}

// Copies `node` with different inputs. Returns null if it cannot be copied because it requires a
// reference.
Node* CopyNode(const Node& node, const Outputs& inputs, const std::string& name) {
  const OpSpec& spec = node.op();
  NodeBuilder builder(node.graph(), node.op_name() == "RefSwitch" ? "Switch" : node.op_name());
  builder.Name(name);
  for (const ArgSpec& arg : spec.inputs()) {
    const auto [first, last] = node.InputRange(arg.name);
    if (arg.is_ref && node.op_name() != "RefSwitch" && !inputs[first].is_ref()) return nullptr;
    if (arg.number_attr.empty() && arg.type_list_attr.empty()) {
      builder.Input(inputs[first]);
    } else {
      builder.InputList(absl::MakeSpan(inputs).subspan(first, last - first));
    }
  }
  for (Node* control : node.control_inputs()) builder.Control(control);
  for (const auto& [key, value] : node.attrs()) builder.Attr(key, value);
  return builder.Build();
}

}  // namespace

Output GuardInitialValue(Output initial_value, const std::string& name_scope) {
  if (initial_value.node->num_inputs() == 0 && !IsRefStorage(*initial_value.node))
    return initial_value;
  Graph& g = initial_value.graph();
  absl::flat_hash_map<const Node*, Node*> replaced;
  for (Node* node : PostOrder(initial_value.node)) {
    if (IsRefStorage(*node)) {
      const Variable v = ListedVariable(g, node);
      if (!v.valid()) continue;
      const Output guarded = v.initialized_value();
      if (!guarded.valid()) return {};
      replaced[node] = guarded.node;
      continue;
    }
    if (IsBoundary(*node)) continue;
    Outputs inputs(node->inputs().begin(), node->inputs().end());
    bool changed = false;
    for (Output& in : inputs) {
      if (const auto it = replaced.find(in.node); it != replaced.end()) {
        in = it->second->output(in.index);
        changed = true;
      }
    }
    if (!changed) continue;
    const std::string name =
        absl::StrReplaceAll(absl::StrCat(node->name(), "_", name_scope), {{":", "_"}});
    if (Node* again = CopyNode(*node, inputs, name); again != nullptr) replaced[node] = again;
  }
  if (!g.status().ok()) return {};
  const auto it = replaced.find(initial_value.node);
  return it == replaced.end() ? initial_value : Output(it->second, initial_value.index);
}

Output Variable::initialized_value() const {
  if (!this->valid()) return {};
  if (is_partitioned())
    return ConcatParts(*this, [](const Variable& part) { return part.initialized_value(); });
  if (!info_->initial_value.valid()) return {};
  const ClearControlDependencies no_controls(graph());
  return Cond(
      is_initialized(), [this] { return read_value(); }, [this] { return info_->initial_value; });
}

}  // namespace weir
