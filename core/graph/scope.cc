#include "weir/core/graph/scope.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "weir/core/graph/signature.h"

namespace weir {

namespace {

bool IsScopeName(absl::string_view name, bool at_root) {
  if (at_root && !IsFirstNodeNameChar(name[0])) return false;
  return std::all_of(name.begin(), name.end(), IsNodeNameChar);
}

}  // namespace

NameScope::NameScope(Graph& graph, absl::string_view name)
    : graph_(graph), saved_(graph.name_scope()) {
  if (name.empty()) {
    name_ = "";
  } else if (!IsScopeName(name, saved_.empty() || absl::EndsWith(name, "/"))) {
    const char* const kind = saved_.empty() ? "root scope name" : "scope name";
    graph.Fail(InvalidArgument("'", name, "' is not a valid ", kind, ". A ", kind,
                               " has to match the following pattern: ^[A-Za-z0-9",
                               saved_.empty() ? ".][A-Za-z0-9" : "", "_.\\\\/>-]*$"));
    name_ = saved_;
  } else if (absl::EndsWith(name, "/")) {
    name_ = std::string(name);
  } else {
    name_ = graph.UniqueName(absl::StrCat(saved_, name)) + "/";
  }
  graph.set_name_scope(name_);
}

NameScope::~NameScope() { graph_.set_name_scope(std::move(saved_)); }

ContextScope::ContextScope(Graph& graph) : graph_(graph), saved_(graph.context()) {}
ContextScope::~ContextScope() { graph_.context() = std::move(saved_); }

DeviceScope::DeviceScope(Graph& graph, absl::string_view device) : ContextScope(graph) {
  if (device.empty()) {
    graph.context().devices.clear();
    return;
  }
  const absl::StatusOr<DeviceName> name = DeviceName::Parse(device);
  if (!name.ok()) {
    graph.Fail(name.status());
    return;
  }
  graph.context().devices.push_back([text = name->ToString()](const Node&) { return text; });
}

DeviceScope::DeviceScope(Graph& graph, Graph::DeviceFn device) : ContextScope(graph) {
  graph.context().devices.push_back(std::move(device));
}

ControlDependencies::ControlDependencies(Graph& graph, const std::vector<Operation>& ops)
    : ContextScope(graph) {
  auto group = std::make_shared<Graph::ControlGroup>();
  for (const Operation& op : ops) {
    if (op.valid()) group->controls.push_back(op.node);
  }
  if (!group->controls.empty()) graph.context().control_groups.push_back(std::move(group));
}

ClearControlDependencies::ClearControlDependencies(Graph& graph) : ContextScope(graph) {
  graph.context().control_groups.clear();
}

// Colocation determines the device, so outer device scopes do not apply inside.
ColocateWith::ColocateWith(Graph& graph, Operation op, bool ignore_existing) : ContextScope(graph) {
  Graph::Context& context = graph.context();
  context.devices.clear();
  if (ignore_existing) context.colocations.clear();
  if (!op.valid()) return;
  std::vector<std::string> names = op.node->colocations();
  if (names.empty()) names.push_back(op.name());
  for (const std::string& name : names) {
    std::string mark = absl::StrCat("loc:@", name);
    if (std::find(context.colocations.begin(), context.colocations.end(), mark) ==
        context.colocations.end()) {
      context.colocations.push_back(std::move(mark));
    }
  }
}

AttrScope::AttrScope(Graph& graph, absl::string_view name, AttrValue value) : ContextScope(graph) {
  graph.context().attrs.emplace_back(std::string(name), std::move(value));
}

ContainerScope::ContainerScope(Graph& graph, absl::string_view container) : ContextScope(graph) {
  graph.context().container = std::string(container);
}

}  // namespace weir
