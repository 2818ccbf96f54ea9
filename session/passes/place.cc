#include "weir/session/plan/place.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_join.h"
#include "weir/core/graph/unknown_op.h"
#include "weir/session/passes/check_unknown_ops.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/variable_use.h"

// Placement. Nodes that must share a device form colocation groups: nodes with a common "loc:@name"
// attribute, nodes joined by a reference or a resource handle (an update works on the variable's
// own memory), and nodes that create handles to the same resource. A group's requested device is
// the merge of all its members' requests. Among the matching devices, an accelerator is preferred
// over the CPU, and every member must have a kernel for it (a member that has a kernel for no
// device is ignored). A group without such a device goes to the CPU if soft placement is enabled,
// with a line in the log; otherwise it is an error. Boolean logic on values that accelerators leave
// in host memory, or on scalars of the CPU, such as the two conditions that end a loop, stays on
// the CPU, where the control flow that depends on it reads it: an accelerator would need a copy to
// the device, a synchronization, and a copy of the result back (TensorFlow pins such nodes to the
// host, grappler/optimizers/pin_to_host_optimizer.cc).
//
// Groups span the whole graph and not only the current step: uses of a variable in later steps
// count for its placement in the first one. They are a union-find over the graph's nodes; the
// members of a group form a ring, so that joining two groups takes constant time. A group is placed
// when a step first needs it, and is never moved: nodes added later follow it, or are errors.
namespace weir {

namespace {

// Returns the key of the resource to which this node creates a handle; "" if it creates none.
std::string ResourceKey(const Node& node) {
  if (node.num_inputs() > 0 || node.num_outputs() == 0 || !IsHandle(node.output_type(0))) return "";
  if (node.FindAttr("shared_name") == nullptr) return "";
  const auto shared = node.attr_or<std::string>("shared_name", "");
  const auto container = node.attr_or<std::string>("container", "");
  return absl::StrCat(container.empty() ? ResourceMap::kDefaultContainer : container, "\n",
                      shared.empty() ? node.name() : shared);
}

// Returns true for elementwise ops on bools: LogicalAnd.
bool IsLogic(const Node& node) {
  return node.op().traits().elementwise && node.num_outputs() == 1 &&
         node.output_type(0) == DT_BOOL && node.input_type(0) == DT_BOOL;
}

}  // namespace

bool IsHostArgument(const KernelDef& kernel, const Node& node, int i, bool is_input) {
  for (const std::string& name : kernel.host_args) {
    if (name == kAllArgs) return true;
    const auto [first, last] = is_input ? node.InputRange(name) : node.OutputRange(name);
    if (i >= first && i < last) return true;
  }
  return false;
}

absl::Status Placement::Unite(int a, int b) {
  a = groups_.Find(a), b = groups_.Find(b);
  if (a == b) return absl::OkStatus();
  if (device_[a] != nullptr && device_[b] != nullptr && device_[a] != device_[b]) {
    return InvalidArgument("Cannot colocate nodes ", graph_.nodes()[a]->Label(), " and ",
                           graph_.nodes()[b]->Label(), ": earlier steps placed them on ",
                           device_[a]->text(), " and on ", device_[b]->text());
  }
  if (device_[a] == nullptr) device_[a] = device_[b];
  groups_.Join(b, a);
  std::swap(next_[a], next_[b]);
  return absl::OkStatus();
}

// Joins the nodes that were added to the graph since the last call.
void Placement::AddNewNodes() {
  const int known = groups_.size(), count = graph_.num_nodes();
  for (int i = known; i < count; ++i) {
    groups_.Add();
    next_.push_back(i);
    device_.push_back(nullptr);
  }
  for (int i = known; i < count; ++i) {
    if (absl::Status s = Join(*graph_.nodes()[i]); !s.ok()) conflicts_[i] = std::move(s);
  }
}

absl::Status Placement::Join(const Node& node) {
  for (int k = 0; k < node.num_inputs(); ++k) {
    const Output& in = node.input(k);
    if (in.valid() && IsHandle(node.input_type(k)) && IsHandle(in.node->output_type(in.index)))
      WEIR_RETURN_IF_ERROR(Unite(in.node->id(), node.id()));
  }
  if (devices_.size() == 1) return absl::OkStatus();
  const auto join_class = [&](std::string key) {
    mutex_.AssertHeld();
    const auto [it, inserted] = classes_.try_emplace(std::move(key), node.id());
    return inserted ? absl::OkStatus() : Unite(it->second, node.id());
  };
  if (std::string key = ResourceKey(node); !key.empty())
    WEIR_RETURN_IF_ERROR(join_class(std::move(key)));
  for (const std::string& name : node.colocations()) {
    const Node* leader = graph_.FindNode(name);
    WEIR_RETURN_IF_ERROR(leader != nullptr ? Unite(leader->id(), node.id())
                                           : join_class(absl::StrCat("loc:@", name)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Placement::Choice> Placement::Choose(const Node& node) {
  AddNewNodes();
  if (const auto it = conflicts_.find(node.id()); it != conflicts_.end()) return it->second;
  const int root = groups_.Find(node.id());
  if (device_[root] == nullptr && devices_.size() == 1 && !RequestsDevice(root)) {
    device_[root] = devices_[0].get();
  } else if (device_[root] == nullptr) {
    WEIR_ASSIGN_OR_RETURN(const Group group, GroupOf(root));
    if (IsHostLogic(group)) {
      device_[root] = devices_[0].get();
    } else {
      WEIR_ASSIGN_OR_RETURN(device_[root], ChooseDevice(group));
    }
  }
  WEIR_ASSIGN_OR_RETURN(const KernelDef* kernel, FindKernel(node, root, *device_[root]));
  return Choice{device_[root], kernel};
}

// True if some node of the group satisfies it.
bool Placement::RequestsDevice(int root) const {
  int i = root;
  do {
    if (!graph_.nodes()[i]->device().empty()) return true;
    i = next_[i];
  } while (i != root);
  return false;
}

// A node that was added after its group was placed may be unable to follow it.
absl::StatusOr<const KernelDef*> Placement::FindKernel(const Node& node, int root,
                                                       const Device& device) const {
  const KernelDef* const kernel = kernels_.Find(node, device.place());
  if (kernel == nullptr && IsUnknownOp(node)) return &UnknownOpKernel();
  if (kernel == nullptr) {
    const absl::Status none = kernels_.NoKernel(node, device.place());
    if (next_[node.id()] == node.id()) return none;
    return InvalidArgument("Cannot assign a device for operation ", node.name(), ": ", node.Label(),
                           " must share a device with ", graph_.nodes()[root]->Label(),
                           ", which an earlier step placed on ", device.text(),
                           ". Create the node before the first run, or place both on the CPU. ",
                           none.message());
  }
  if (options_.allow_soft_placement || node.device().empty()) return kernel;
  WEIR_ASSIGN_OR_RETURN(const DeviceName request, DeviceName::Parse(node.device()));
  if (request.Matches(device.name())) return kernel;
  return InvalidArgument("Cannot colocate nodes ", graph_.nodes()[root]->Label(), " and ",
                         node.Label(), ": an earlier step placed the first on ", device.text(),
                         ", the second requests '", node.device(), "'");
}

absl::StatusOr<Placement::Group> Placement::GroupOf(int root) const {
  std::vector<int> ids = {root};
  for (int i = next_[root]; i != root; i = next_[i]) ids.push_back(i);
  std::sort(ids.begin(), ids.end());
  Group group;
  for (const int id : ids) {
    const Node& node = *graph_.nodes()[id];
    group.members.push_back(&node);
    if (node.device().empty()) continue;
    WEIR_ASSIGN_OR_RETURN(const DeviceName request, DeviceName::Parse(node.device()));
    if (!request.Matches(group.request) && !options_.allow_soft_placement)
      return CannotColocate(*group.requester, node);
    DeviceName merged = request;
    merged.MergeFrom(group.request);  // the first request wins
    group.request = merged;
    if (group.requester == nullptr) group.requester = &node;
  }
  return group;
}

absl::Status Placement::CannotColocate(const Node& a, const Node& b) const {
  return InvalidArgument("Cannot colocate nodes ", a.Label(), " and ", b.Label(),
                         ": they request devices '", a.device(), "' and '", b.device(), "'");
}

bool Placement::HasKernels(const Group& group, const Device& device) const {
  return std::all_of(group.members.begin(), group.members.end(), [&](const Node* node) {
    return kernels_.Find(*node, device.place()) != nullptr ||
           kernels_.Find(*node, devices_[0]->place()) == nullptr;
  });
}

bool Placement::IsHostLogic(const Group& group) {
  const Node& node = *group.members[0];
  if (group.members.size() > 1 || group.requester != nullptr) return false;
  return IsLogic(node) &&
         std::all_of(node.inputs().begin(), node.inputs().end(), [&](const Output& in) {
           mutex_.AssertHeld();
           return IsOnHost(in);
         });
}

// Places the producers of the inputs first, except other logic nodes, which may form chains of any
// length. The shape of a value in a loop is often unknown; values that an accelerator's kernel
// leaves in host memory are small.
bool Placement::IsOnHost(const Output& value) {
  const Node& node = *value.node;
  if (device_[groups_.Find(node.id())] == nullptr && (IsLogic(node) || !Choose(node).ok()))
    return false;
  const Device& device = *device_[groups_.Find(node.id())];
  if (device.is_host()) return value.shape().rank() == 0;
  const KernelDef* const kernel = kernels_.Find(node, device.place());
  return kernel != nullptr && IsHostArgument(*kernel, node, value.index, false);
}

absl::StatusOr<Device*> Placement::ChooseDevice(const Group& group) const {
  for (size_t i = 1; i < devices_.size(); ++i) {
    const Device& device = *devices_[i];
    if (group.request.Matches(device.name()) && HasKernels(group, device)) return devices_[i].get();
  }
  Device* const cpu = devices_[0].get();
  if (group.request.Matches(cpu->name())) return cpu;
  // Soft placement changes the device type and number, not the task: another task is another
  // process.
  DeviceName task = group.request;
  task.type.reset();
  task.id.reset();
  if (!options_.allow_soft_placement || !task.Matches(cpu->name())) return CannotAssign(group);
  std::fprintf(
      stderr, "weir: %s requests %s, which does not exist or has no kernel for it; using %s\n",
      group.requester->Label().c_str(), group.request.ToString().c_str(), cpu->text().c_str());
  return cpu;
}

absl::Status Placement::CannotAssign(const Group& group) const {
  std::vector<std::string> names;
  for (const auto& device : devices_) {
    names.push_back(device->text());
    if (!group.request.Matches(device->name())) continue;
    for (const Node* node : group.members) {
      if (kernels_.Find(*node, device->place()) == nullptr) {
        return InvalidArgument("Cannot assign a device for operation ", group.requester->name(),
                               ": Could not satisfy explicit device specification '",
                               group.requester->device(), "'. ",
                               kernels_.NoKernel(*node, device->place()).message());
      }
    }
  }
  return InvalidArgument("Cannot assign a device for operation ", group.requester->name(),
                         ": node ", group.requester->Label(), " was explicitly assigned to ",
                         group.request.ToString(), " but available devices are [ ",
                         absl::StrJoin(names, ", "),
                         " ]. Make sure the device specification refers to a valid device.");
}

namespace {

// Edges may have changed since the nodes were joined.
absl::Status CheckHandles(const PlanGraph& plan, const PlanNode& n) {
  for (size_t k = 0; k < n.inputs.size(); ++k) {
    const PlanNode& maker = plan.nodes[n.inputs[k].node];
    if (!IsHandle(n.node->input_type(static_cast<int>(k))) || maker.kind == PlanNode::Kind::kFeed ||
        maker.device == n.device || !IsHandle(maker.node->output_type(n.inputs[k].output)))
      continue;
    return InvalidArgument("Cannot colocate nodes ", maker.node->Label(), " and ", n.node->Label(),
                           ": earlier steps placed them on ", maker.device->text(), " and on ",
                           n.device->text());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Place(PlanGraph& plan, const PlanEnvironment& env) {
  const MutexLock lock(env.placement.mutex());
  for (PlanNode& n : plan.nodes) {
    if (n.kind == PlanNode::Kind::kFeed) {
      n.device = env.devices[0].get();
      continue;
    }
    WEIR_ASSIGN_OR_RETURN(const Placement::Choice chosen, env.placement.Choose(*n.node));
    n.device = chosen.device;
    n.def = chosen.kernel;
    if (n.kind == PlanNode::Kind::kCarry)
      continue;  // its NextIteration determines where its value is stored
    WEIR_RETURN_IF_ERROR(CheckHandles(plan, n));
    if (env.options.log_device_placement) {
      std::fprintf(stderr, "%s: (%s): %s\n", n.node->name().c_str(), n.node->op_name().c_str(),
                   n.device->text().c_str());
    }
  }
  return absl::OkStatus();
}

}  // namespace weir
