#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "weir/core/shape_context.h"
#include "weir/session/passes.h"

namespace weir {

namespace {

// The runtime's internal ops. Their nodes only carry types, and all plans share them.
class InternalNodes {
 public:
  InternalNodes() : graph_(Register(&ops_)) {}

  const Node& Get(absl::string_view op, DataType dtype) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Node*& node = nodes_[{std::string(op), dtype}];
    if (node == nullptr) {
      Node* source = NodeBuilder(graph_, "_Source").Name("Source").Attr("T", dtype).Build();
      node = NodeBuilder(graph_, op).Name(op.substr(1)).Input(source->output()).Build();
    }
    return *node;
  }

  const OpRegistry& ops() const { return ops_; }

 private:
  static const OpRegistry& Register(OpRegistry* ops) {
    ops->Add(OpSpec("_Source")
                 .Out("y: T")
                 .Attr("T: type")
                 .InferShape(UnknownShape)
                 .Doc("A placeholder for any value."));
    ops->Add(OpSpec("_Read")
                 .In("x: T")
                 .Out("y: T")
                 .Attr("T: type")
                 .Moves(Movement::kStored)
                 .InferShape(SameShape)
                 .Doc("Reads the value of a reference."));
    ops->Add(OpSpec("_Copy")
                 .In("x: T")
                 .Out("y: T")
                 .Attr("T: type")
                 .Moves(Movement::kCopy)
                 .InferShape(SameShape)
                 .Doc("Copies a tensor to another device."));
    ops->Add(OpSpec("_Wait").In("x: T").Attr("T: type").Doc("Waits for its control inputs."));
    return *ops;
  }

  std::mutex mutex_;
  OpRegistry ops_;
  Graph graph_;
  std::map<std::pair<std::string, DataType>, const Node*> nodes_;
};

DataType TypeOf(const PlanGraph& plan, const PlanValue& v) {
  const PlanNode& n = plan.nodes[v.node];
  const bool is_declared_type = n.kind == PlanNode::Kind::kOp || n.kind == PlanNode::Kind::kCarry;
  return is_declared_type ? n.type(v.output) : BaseType(n.type(0));
}

}  // namespace

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

namespace {

InternalNodes& AllInternalNodes() {
  static InternalNodes* const nodes = new InternalNodes;
  return *nodes;
}

}  // namespace

const Node& InternalNode(absl::string_view op, DataType dtype) {
  return AllInternalNodes().Get(op, dtype);
}
const OpRegistry& InternalOps() { return AllInternalNodes().ops(); }

// Inserts a read where an op that takes a value is given a reference (TensorFlow 1's `w` itself,
// not `w/read`). Each such op gets a read of its own that runs when all the op's other inputs are
// ready: the latest moment that the graph's edges order, so it sees every assignment that they
// order before the op. A fetched reference is read after everything in the step that the fetch
// depends on, which ends with the node that created it. A Merge runs even if other inputs are dead,
// and so must its read: it depends neither on the other inputs nor on anything in a branch that may
// not be taken.
absl::Status InsertReads(PlanGraph& plan) {
  const size_t count = plan.nodes.size();
  const auto merges_reference = [&plan](const PlanNode& n) {
    return n.def != nullptr && n.def->accepts_dead &&
           std::any_of(n.inputs.begin(), n.inputs.end(),
                       [&](const PlanValue& v) { return IsRef(TypeOf(plan, v)); });
  };
  if (std::any_of(plan.nodes.begin(), plan.nodes.end(), merges_reference)) AnalyzeDeadness(plan);
  const auto read = [&](const PlanValue& ref, const PlanNode* consumer) {
    PlanNode node;
    node.kind = PlanNode::Kind::kRead;
    node.node = &InternalNode("_Read", BaseType(TypeOf(plan, ref)));
    node.device = plan.nodes[ref.node].device;
    node.shapes = {plan.nodes[ref.node].node->output_shape(ref.output)};
    node.inputs.push_back(ref);
    node.loop = node.value_loop = plan.nodes[ref.node].value_loop;
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
      if (!IsRef(TypeOf(plan, value)) || IsRef(plan.nodes[i].node->input_type(k))) continue;
      // An op that takes the value twice has one read: the value must not change in between.
      const auto* const same =
          std::find(original_inputs.begin(), original_inputs.begin() + k, value);
      if (same != original_inputs.begin() + k &&
          !IsRef(plan.nodes[i].node->input_type(same - original_inputs.begin()))) {
        plan.nodes[i].inputs[k] = plan.nodes[i].inputs[same - original_inputs.begin()];
        continue;
      }
      PlanNode node = read(value, &plan.nodes[i]);
      plan.nodes[i].inputs[k] = PlanValue{static_cast<int>(plan.nodes.size()), 0};
      plan.Add(std::move(node));
    }
  }
  for (PlanValue& fetch : plan.fetches) {
    if (!IsRef(TypeOf(plan, fetch))) continue;
    PlanNode node = read(fetch, nullptr);
    fetch = PlanValue{static_cast<int>(plan.nodes.size()), 0};
    plan.Add(std::move(node));
  }
  return SortTopologically(plan);
}

// Copies a tensor once to each other device that needs it; between two accelerators the copy goes
// through the host. Handles and references are never copied: placement has put their users on their
// device. Arguments that a kernel keeps in host memory are on the CPU.
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
    node.node = &InternalNode("_Copy", TypeOf(plan, v));
    node.device = to;
    node.inputs.push_back(v);
    node.loop = node.value_loop = plan.nodes[v.node].value_loop;
    plan.Add(std::move(node));
    return copies[key] = PlanValue{static_cast<int>(plan.nodes.size()) - 1, 0};
  };
  const auto copy_to = [&](const PlanValue& v, Device* target) {
    const DataType type = TypeOf(plan, v);
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
