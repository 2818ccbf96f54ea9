#include "weir/session/model/variable_values.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "weir/core/runtime/resource.h"

namespace weir {
namespace {

// Returns the value of a variable that no ReadVariableOp of the graph reads without control inputs.
absl::StatusOr<Tensor> ReadHandle(const Tensor& handle, const std::string& name) {
  const auto state =
      std::dynamic_pointer_cast<VariableState>(handle.data<ResourceHandle>()->resource);
  if (state == nullptr || !state->on_host()) {
    return Unimplemented("Cannot read the variable '", name,
                         "', whose value is not in this process's memory and which no node of the "
                         "graph reads: add a ReadVariableOp");
  }
  return state->Read();
}

}  // namespace

absl::StatusOr<Tensors> ReadVariables(Session& session, const std::vector<Node*>& variables) {
  absl::flat_hash_map<const Node*, Output> reads;  // by the handle's node, without control inputs
  for (const std::unique_ptr<Node>& node : session.graph().nodes()) {
    if (node->op().traits().variable_use == VariableUse::kReads && node->control_inputs().empty())
      reads.emplace(node->input(0).node, node->output());
  }
  Outputs fetches;
  for (const Node* variable : variables) {
    const auto read = reads.find(variable);
    fetches.push_back(read != reads.end() ? read->second : variable->output());
  }
  if (fetches.empty()) return Tensors();
  WEIR_ASSIGN_OR_RETURN(Tensors values, session.Run(fetches));
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].dtype() == DT_RESOURCE) {
      WEIR_ASSIGN_OR_RETURN(values[i], ReadHandle(values[i], variables[i]->name()));
    }
  }
  return values;
}

}  // namespace weir
