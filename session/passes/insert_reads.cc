#include <algorithm>

#include "weir/session/passes/passes.h"
#include "weir/session/plan/internal_nodes.h"

// Inserts a read where an op that takes a value is given a reference (TensorFlow 1's `w` itself,
// not `w/read`). Each such op gets a read of its own that runs when all the op's other inputs are
// ready: the latest moment that the graph's edges order, so it sees every assignment that they
// order before the op. A fetched reference is read after everything in the step that the fetch
// depends on, which ends with the node that created it. A Merge runs even if other inputs are dead,
// and so must its read: it depends neither on the other inputs nor on anything in a branch that may
// not be taken.
namespace weir {

absl::Status InsertReads(PlanGraph& plan) {
  const size_t count = plan.nodes.size();
  const auto merges_reference = [&plan](const PlanNode& n) {
    return n.def != nullptr && n.def->accepts_dead &&
           std::any_of(n.inputs.begin(), n.inputs.end(),
                       [&](const PlanValue& v) { return IsRef(plan.TypeOf(v)); });
  };
  if (std::any_of(plan.nodes.begin(), plan.nodes.end(), merges_reference)) AnalyzeDeadness(plan);
  const auto read = [&](const PlanValue& ref, const PlanNode* consumer) {
    PlanNode node;
    node.kind = PlanNode::Kind::kRead;
    node.node = &InternalNode("_Read", BaseType(plan.TypeOf(ref)));
    node.device = plan.nodes[ref.node].device;
    node.shapes = {plan.nodes[ref.node].node->output_shape(ref.output)};
    node.inputs.push_back(ref);
    node.loop = node.value_loop = plan.nodes[ref.node].value_loop;
    node.reported_node = consumer == nullptr ? plan.nodes[ref.node].node : consumer->node;
    if (consumer == nullptr) return node;
    const bool merges = consumer->def != nullptr && consumer->def->accepts_dead;
    for (const PlanValue& other : consumer->inputs) {
      if (!merges && other.node != ref.node && other.node < static_cast<int>(count))
        node.controls.push_back(other.node);
    }
    for (const int control : consumer->controls) {
      if (!merges || !plan.nodes[control].may_be_dead) node.controls.push_back(control);
    }
    return node;
  };
  for (size_t i = 0; i < count; ++i) {
    if (plan.nodes[i].kind != PlanNode::Kind::kOp) continue;
    const int num_inputs = static_cast<int>(plan.nodes[i].inputs.size());
    const auto original_inputs = plan.nodes[i].inputs;
    for (int k = 0; k < num_inputs; ++k) {
      const PlanValue value = original_inputs[k];
      if (!IsRef(plan.TypeOf(value)) || IsRef(plan.nodes[i].node->input_type(k))) continue;
      // An op that takes the value twice has one read: the value must not change in between.
      const auto* const same =
          std::find(original_inputs.begin(), original_inputs.begin() + k, value);
      if (same != original_inputs.begin() + k &&
          !IsRef(plan.nodes[i].node->input_type(same - original_inputs.begin()))) {
        plan.nodes[i].inputs[k] = plan.nodes[i].inputs[same - original_inputs.begin()];
        continue;
      }
      PlanNode node = read(value, &plan.nodes[i]);
      const int id = plan.Insert(std::move(node));
      plan.nodes[i].inputs[k] = {id, 0};
    }
  }
  for (PlanValue& fetch : plan.fetches) {
    if (!IsRef(plan.TypeOf(fetch))) continue;
    PlanNode node = read(fetch, nullptr);
    fetch = {plan.Insert(std::move(node)), 0};
  }
  return SortTopologically(plan);
}

}  // namespace weir
