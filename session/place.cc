#include <cstdio>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_join.h"
#include "weir/core/scope.h"
#include "weir/session/plan.h"

// Placement. Nodes that must share a device form groups: those with a common "loc:@name" mark, and
// those joined by a reference or a resource handle (an update works on the variable's own memory).
// A group takes the merged device of all its members' requests; among the devices that match, an
// accelerator goes before the CPU, and every member must have a kernel for it. A group without such
// a device goes to the CPU if soft placement is on, with a line in the log, and is an error
// otherwise. Groups are a union-find over plan nodes; one pass collects the requests, one decides,
// one assigns.
namespace weir {

namespace {

bool IsHandle(DataType type) { return IsRef(type) || type == DT_RESOURCE; }

class Placer {
 public:
  Placer(PlanGraph& plan, const PlanEnvironment& env)
      : plan_(plan), env_(env), parent_(plan.nodes.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  absl::Status Run() {
    Join();
    WEIR_RETURN_IF_ERROR(MergeRequests());
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      PlanNode& n = plan_.nodes[i];
      if (n.kind != PlanNode::Kind::kOp) {
        n.device = env_.devices[0].get();
        continue;
      }
      Group& group = groups_[Root(static_cast<int>(i))];
      if (group.device == nullptr) WEIR_RETURN_IF_ERROR(Decide(&group));
      n.device = group.device;
      n.def = env_.kernels.Find(*n.node, n.device->place());
      if (n.def == nullptr) return env_.kernels.NoKernel(*n.node, n.device->place());
      if (env_.options.log_device_placement) {
        std::fprintf(stderr, "%s: (%s): %s\n", n.node->name().c_str(), n.node->op_name().c_str(),
                     n.device->text().c_str());
      }
    }
    return absl::OkStatus();
  }

 private:
  struct Group {
    DeviceName request;
    const Node* requester = nullptr;
    std::vector<int> members;
    Device* device = nullptr;
  };

  int Root(int i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void Unite(int a, int b) { parent_[Root(b)] = Root(a); }

  void Join() {
    absl::flat_hash_map<std::string, int> classes;
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& n = plan_.nodes[i];
      if (n.kind != PlanNode::Kind::kOp) continue;
      const int id = static_cast<int>(i);
      for (const PlanValue& in : n.inputs) {
        const PlanNode& producer = plan_.nodes[in.node];
        if (producer.kind == PlanNode::Kind::kOp &&
            IsHandle(producer.node->output_type(in.output))) {
          const auto k = static_cast<int>(&in - n.inputs.data());
          if (IsHandle(n.node->input_type(k))) Unite(in.node, id);
        }
      }
      if (env_.devices.size() == 1) continue;
      classes.try_emplace(n.node->name(), id).first->second = id;
      for (const std::string& name : n.node->colocations()) {
        const auto [it, inserted] = classes.try_emplace(name, id);
        if (!inserted) Unite(it->second, id);
      }
    }
  }

  absl::Status MergeRequests() {
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& n = plan_.nodes[i];
      if (n.kind != PlanNode::Kind::kOp) continue;
      Group& group = groups_[Root(static_cast<int>(i))];
      group.members.push_back(static_cast<int>(i));
      if (n.node->device().empty()) continue;
      WEIR_ASSIGN_OR_RETURN(const DeviceName request, DeviceName::Parse(n.node->device()));
      if (!request.Matches(group.request) && !env_.options.allow_soft_placement) {
        return InvalidArgument("Cannot colocate nodes ", group.requester->Label(), " and ",
                               n.node->Label(), ": they ask for devices '",
                               group.requester->device(), "' and '", n.node->device(), "'");
      }
      DeviceName merged = request;
      merged.MergeFrom(group.request);  // what was asked first wins
      group.request = merged;
      if (group.requester == nullptr) group.requester = n.node;
    }
    return absl::OkStatus();
  }

  bool HasKernels(const Group& group, const Device& device) const {
    for (const int member : group.members) {
      if (env_.kernels.Find(*plan_.nodes[member].node, device.place()) == nullptr) return false;
    }
    return true;
  }

  absl::Status Decide(Group* group) {
    const auto fits = [&](const Device& device) {
      return group->request.Matches(device.name()) && HasKernels(*group, device);
    };
    for (size_t i = 1; i < env_.devices.size() && group->device == nullptr; ++i) {
      if (fits(*env_.devices[i])) group->device = env_.devices[i].get();
    }
    Device* const cpu = env_.devices[0].get();
    if (group->device != nullptr) return absl::OkStatus();
    if (group->request.Matches(cpu->name())) {
      group->device = cpu;
      return absl::OkStatus();
    }
    if (!env_.options.allow_soft_placement) return CannotAssign(*group);
    std::fprintf(
        stderr, "weir: %s asked for %s, which is missing or has no kernel for it; using %s\n",
        group->requester->Label().c_str(), group->request.ToString().c_str(), cpu->text().c_str());
    group->device = cpu;
    return absl::OkStatus();
  }

  absl::Status CannotAssign(const Group& group) const {
    std::vector<std::string> names;
    for (const auto& device : env_.devices) {
      names.push_back(device->text());
      if (!group.request.Matches(device->name())) continue;
      for (const int member : group.members) {
        const Node& node = *plan_.nodes[member].node;
        if (env_.kernels.Find(node, device->place()) == nullptr) {
          return InvalidArgument("Cannot assign a device for operation ", group.requester->name(),
                                 ": Could not satisfy explicit device specification '",
                                 group.requester->device(), "'. ",
                                 env_.kernels.NoKernel(node, device->place()).message());
        }
      }
    }
    return InvalidArgument("Cannot assign a device for operation ", group.requester->name(),
                           ": node ", group.requester->Label(), " was explicitly assigned to ",
                           group.request.ToString(), " but available devices are [ ",
                           absl::StrJoin(names, ", "),
                           " ]. Make sure the device specification refers to a valid device.");
  }

  PlanGraph& plan_;
  const PlanEnvironment& env_;
  std::vector<int> parent_;
  absl::flat_hash_map<int, Group> groups_;
};

}  // namespace

absl::Status Place(PlanGraph& plan, const PlanEnvironment& env) { return Placer(plan, env).Run(); }

}  // namespace weir
