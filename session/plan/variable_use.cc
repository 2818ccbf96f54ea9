#include "weir/session/plan/variable_use.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace weir {

bool IsVariable(const Node& node) {
  return node.op().traits().variable_use == VariableUse::kDeclares;
}

bool IsVariable(const PlanNode& node) {
  return node.kind == PlanNode::Kind::kOp && IsVariable(*node.node);
}

std::pair<std::string, std::string> VariableKey(const Node& variable) {
  std::string name = variable.attr_or<std::string>("shared_name", "");
  if (name.empty()) name = variable.name();
  return {variable.attr_or<std::string>("container", ""), std::move(name)};
}

VariableValues FindVariables(const PlanGraph& plan) {
  const int count = static_cast<int>(plan.nodes.size());
  VariableValues out{std::vector<int>(count, -1), std::vector<int>(count, -1)};
  absl::flat_hash_map<std::pair<std::string, std::string>, int> first;
  for (int i = 0; i < count; ++i) {
    const PlanNode& n = plan.nodes[i];
    if (n.removed) continue;
    if (n.kind == PlanNode::Kind::kFeed) {  // a captured handle of a function
      if (n.type(0) == DT_RESOURCE) out.handle_of[i] = i;
      continue;
    }
    if (n.kind == PlanNode::Kind::kRead) {
      out.value_of[i] = out.handle_of[n.inputs[0].node];
    } else if (n.kind == PlanNode::Kind::kOp) {
      const DataType type = n.node->num_outputs() > 0 ? n.node->output_type(0) : DT_INVALID;
      if (n.inputs.empty()) {
        if (IsVariable(n)) {
          out.handle_of[i] = first.try_emplace(VariableKey(*n.node), i).first->second;
        } else if (IsHandle(type)) {
          out.handle_of[i] = i;
        }
      } else if (IsHandle(type)) {
        out.handle_of[i] = out.handle_of[n.inputs[0].node];
      } else if (n.Is(VariableUse::kReads)) {
        out.value_of[i] = out.handle_of[n.inputs[0].node];
      } else if (n.def != nullptr && n.def->AliasedInput(0) >= 0) {
        out.value_of[i] = out.value_of[n.inputs[n.def->AliasedInput(0)].node];
      }
    }
  }
  return out;
}

std::vector<VariableAccess> FindAccesses(const PlanGraph& plan, const VariableValues& variables) {
  std::vector<VariableAccess> out;
  for (int i = 0; i < static_cast<int>(plan.nodes.size()); ++i) {
    const PlanNode& n = plan.nodes[i];
    const bool is_op = n.kind == PlanNode::Kind::kOp;
    if (n.removed || !(is_op || n.kind == PlanNode::Kind::kRead)) continue;
    const bool forwards = is_op && variables.handle_of[i] >= 0;
    for (int k = 0; k < static_cast<int>(n.inputs.size()); ++k) {
      const PlanValue& in = n.inputs[k];
      const int variable = variables.handle_of[in.node];
      if (variable < 0 || !IsHandle(plan.nodes[in.node].type(in.output))) continue;
      const bool writes = n.def != nullptr && std::find(n.def->writes.begin(), n.def->writes.end(),
                                                        k) != n.def->writes.end();
      if (!writes && forwards) continue;
      const bool assigns = writes && n.Is(VariableUse::kReplaces);
      out.push_back({i, variable,
                     assigns  ? VariableAccess::Kind::kAssign
                     : writes ? VariableAccess::Kind::kUpdate
                              : VariableAccess::Kind::kRead});
    }
  }
  return out;
}

}  // namespace weir
