#include "weir/rpc/cluster/task_placement.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "weir/session/plan/variable_use.h"

namespace weir::rpc {

namespace {

// The part of a name that no soft placement changes.
DeviceName TaskPart(DeviceName name) {
  name.type.reset();
  name.id.reset();
  return name;
}

absl::Status CannotColocate(const Node& a, const Node& b) {
  return InvalidArgument("Cannot colocate nodes ", a.Label(), " and ", b.Label(),
                         ", which must share a device: they request '", a.device(), "' and '",
                         b.device(), "'");
}

// Whether the node (may be null) has a resource or a variable of its own, and uses no other.
bool IsOwner(const Node* node) {
  if (node == nullptr || node->num_outputs() == 0 || !IsHandle(node->output_type(0))) return false;
  for (int i = 0; i < node->num_inputs(); ++i) {
    if (IsHandle(node->input_type(i))) return false;
  }
  return true;
}

// The device of this task that a request names, or null.
const ServerDevice* FindDevice(const SessionTask& task, const DeviceName& request) {
  if (!request.type && !request.id) return &task.host();
  for (const ServerDevice& device : task.devices) {
    const absl::StatusOr<DeviceName> name = DeviceName::Parse(device.name);
    if (name.ok() && request.Matches(*name)) return &device;
  }
  return nullptr;
}

}  // namespace

const ServerDevice& SessionTask::host() const {
  const auto cpu = std::find_if(devices.begin(), devices.end(),
                                [](const ServerDevice& device) { return device.type == "CPU"; });
  return cpu == devices.end() ? devices.front() : *cpu;
}

absl::Status TaskPlacement::PlaceNewNodes() {
  const int first = sets_.size(), end = graph_.num_nodes();
  for (int i = first; i < end; ++i) sets_.Add();
  groups_.resize(end);
  places_.resize(end);
  for (int i = first; i < end; ++i) WEIR_RETURN_IF_ERROR(AddRequest(*graph_.nodes()[i]));
  for (int i = first; i < end; ++i) WEIR_RETURN_IF_ERROR(Join(*graph_.nodes()[i]));
  for (int i = first; i < end; ++i) {
    Group& group = groups_[sets_.Find(i)];
    if (group.place.task < 0) {
      const Node& requester = group.requester == nullptr ? *graph_.nodes()[i] : *group.requester;
      WEIR_ASSIGN_OR_RETURN(group.place, Choose(group.request, requester));
      // What joins the group later must fit.
      WEIR_ASSIGN_OR_RETURN(group.request, DeviceName::Parse(group.place.device));
      group.requester = &requester;
    }
    places_[i] = group.place;
  }
  return absl::OkStatus();
}

absl::Status TaskPlacement::AddRequest(const Node& node) {
  if (node.device().empty()) return absl::OkStatus();
  Group& group = groups_[node.id()];
  absl::StatusOr<DeviceName> request = DeviceName::Parse(node.device());
  if (!request.ok()) return Annotate(request.status(), node.Label());
  group.request = *std::move(request);
  group.requester = &node;
  // Also if the group has a place already, or another member decides.
  return Choose(group.request, node).status();
}

absl::Status TaskPlacement::Join(const Node& node) {
  for (int k = 0; k < node.num_inputs(); ++k) {
    const Output& in = node.input(k);
    if (in.valid() && IsHandle(node.input_type(k)) && IsHandle(in.node->output_type(in.index)))
      WEIR_RETURN_IF_ERROR(Unite(*in.node, node, /*by_handle=*/true));
    // Lists and data sets do not cross between tasks: they stay together where requests let them.
    const bool is_variant = in.valid() && BaseType(node.input_type(k)) == DT_VARIANT;
    if (is_variant && Agree(GroupOf(*in.node), GroupOf(node)))
      WEIR_RETURN_IF_ERROR(Unite(*in.node, node, /*by_handle=*/true));
  }
  for (const std::string& name : node.colocations()) {
    const Node* leader = graph_.FindNode(name);
    if (leader == nullptr) leader = unknown_leaders_.try_emplace(name, &node).first->second;
    WEIR_RETURN_IF_ERROR(Unite(*leader, node, /*by_handle=*/false));
  }
  // It may have been added after those that name it.
  if (const auto members = unknown_leaders_.find(node.name()); members != unknown_leaders_.end())
    return Unite(*members->second, node, /*by_handle=*/false);
  return absl::OkStatus();
}

bool TaskPlacement::Agree(const Group& a, const Group& b) const {
  return soft_ ? TaskPart(a.request).Matches(TaskPart(b.request)) : a.request.Matches(b.request);
}

// Merges the group of `b` into that of `a`, whose requests come first.
absl::Status TaskPlacement::Unite(const Node& a, const Node& b, bool by_handle) {
  const int to = sets_.Find(a.id()), from = sets_.Find(b.id());
  if (to == from) return absl::OkStatus();
  Group &kept = groups_[to], &merged = groups_[from];
  if (kept.place.task >= 0 && merged.place.task >= 0 && kept.place.device != merged.place.device) {
    return InvalidArgument("Cannot colocate nodes ", a.Label(), " and ", b.Label(),
                           ", which must share a device: they are on ", kept.place.device, " and ",
                           merged.place.device, " already");
  }
  if (Agree(kept, merged)) {
    DeviceName request = merged.request;
    request.MergeFrom(kept.request);  // the first request wins
    kept.request = request;
    if (!IsOwner(kept.requester) && merged.requester != nullptr) kept.requester = merged.requester;
  } else {
    // What uses a resource goes where it is.
    if (!by_handle || (IsOwner(kept.requester) && IsOwner(merged.requester)))
      return CannotColocate(*kept.requester, *merged.requester);
    if (IsOwner(merged.requester)) {
      kept.request = merged.request;
      kept.requester = merged.requester;
    }
  }
  if (kept.place.task < 0) kept.place = merged.place;
  sets_.Join(from, to);
  return absl::OkStatus();
}

absl::StatusOr<TaskPlacement::Place> TaskPlacement::Choose(const DeviceName& request,
                                                           const Node& requester) const {
  const DeviceName task_request = TaskPart(request);
  bool has_task = false;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const TaskName& name = tasks_[i].name;
    const DeviceName task = {.job = name.job, .type = {}, .replica = 0, .task = name.index};
    if (!task_request.Matches(task)) continue;
    has_task = true;
    const ServerDevice* const device = FindDevice(tasks_[i], request);
    if (device == nullptr) continue;
    // The session of the own task chooses among its devices.
    const bool is_open = i == 0 && !request.type && !request.id;
    return Place{static_cast<int>(i), is_open ? name.ToString() : device->name};
  }
  if (has_task && soft_) return Choose(task_request, requester);
  return NoSuchDevice(requester, request);
}

absl::Status TaskPlacement::NoSuchDevice(const Node& requester, const DeviceName& request) const {
  std::vector<std::string> names;
  for (const SessionTask& task : tasks_) {
    for (const ServerDevice& device : task.devices) names.push_back(device.name);
  }
  std::sort(names.begin(), names.end());
  return InvalidArgument("Cannot assign a device for operation ", requester.name(), ": {{node ",
                         requester.name(), "}} was explicitly assigned to ", request.ToString(),
                         " but available devices are [ ", absl::StrJoin(names, ", "),
                         " ]. Make sure the device specification refers to a valid device.");
}

}  // namespace weir::rpc
