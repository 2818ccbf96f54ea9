#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/internal_nodes.h"

// Copies a tensor once to each other device that needs it; between two accelerators the copy goes
// through the host. Handles and references are never copied: placement has put their users on their
// device. Arguments that a kernel keeps in host memory are on the CPU.
namespace weir {

absl::Status InsertCopies(PlanGraph& plan, const PlanEnvironment& env) {
  if (env.devices.size() == 1) return absl::OkStatus();
  Device* const host = env.devices[0].get();
  absl::flat_hash_map<std::tuple<int, int, Device*>, PlanValue> copies;
  const auto device_of = [&](const PlanValue& v) {
    const PlanNode& n = plan.nodes[v.node];
    return n.is_on_accelerator(v.output) ? n.device : host;
  };
  const auto copy = [&](const PlanValue& v, Device* to) {
    const auto key = std::make_tuple(v.node, v.output, to);
    if (const auto found = copies.find(key); found != copies.end()) return found->second;
    PlanNode node;
    node.kind = PlanNode::Kind::kCopy;
    node.node = &InternalNode("_Copy", plan.TypeOf(v));
    node.device = to;
    node.inputs.push_back(v);
    node.loop = node.value_loop = plan.nodes[v.node].value_loop;
    return copies[key] = {plan.Insert(std::move(node)), 0};
  };
  const auto copy_to = [&](const PlanValue& v, Device* target) {
    const DataType type = plan.TypeOf(v);
    Device* from = device_of(v);
    if (from == target || !IsPlain(type) || IsRef(type) || (from->is_host() && target->is_host()))
      return v;
    const bool via_host = !from->is_host() && !target->is_host();
    return copy(via_host ? copy(v, host) : v, target);
  };
  const size_t count = plan.nodes.size();
  for (size_t i = 0; i < count; ++i) {
    if (plan.nodes[i].kind != PlanNode::Kind::kOp) continue;
    for (int k = 0; k < static_cast<int>(plan.nodes[i].inputs.size()); ++k) {
      const PlanNode& n = plan.nodes[i];
      Device* target = n.is_host_input(k) ? host : n.device;
      const PlanValue copied = copy_to(n.inputs[k], target);
      plan.nodes[i].inputs[k] = copied;
    }
  }
  for (PlanValue& fetch : plan.fetches) fetch = copy_to(fetch, host);
  return SortTopologically(plan);
}

}  // namespace weir
