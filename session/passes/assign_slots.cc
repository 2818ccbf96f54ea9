#include "weir/session/passes/lowering.h"
#include "weir/session/passes/passes.h"

namespace weir {

// Values that the step does not compute come first; then those of the nodes in execution order, so
// that the slots of a loop are contiguous.
void AssignSlots(PlanGraph& graph, const PlanEnvironment& env, Lowering& lowering) {
  Slots& slots = lowering.slots;
  slots.first.assign(graph.nodes.size(), -1);
  const auto assign = [&](size_t i) {
    slots.first[i] = slots.count;
    slots.count += graph.nodes[i].num_outputs();
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!graph.nodes[i].removed && !graph.nodes[i].runs()) assign(i);
  }
  for (const int i : lowering.order.order) assign(static_cast<size_t>(i));
}

}  // namespace weir
