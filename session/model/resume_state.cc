#include "weir/session/model/resume_state.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "weir/core/io/checkpoint_state.h"
#include "weir/kernels/lib/resumable.h"
#include "weir/kernels/lib/variable_access.h"
#include "weir/ops/lib/collections.h"
#include "weir/session/model/ancestors.h"

namespace weir {
namespace {

constexpr char kVariable[] = "variable";

// Returns the kind of this name; null if there is none.
const ResumableKind* FindKind(const std::vector<ResumableKind>& kinds, absl::string_view name) {
  const auto it = absl::c_find_if(kinds, [&](const ResumableKind& k) { return k.name == name; });
  return it == kinds.end() ? nullptr : &*it;
}

// Returns the session's own state, and what it shares with other sessions, if that is elsewhere.
std::vector<ResourceMap*> MapsOf(Session& session) {
  std::vector<ResourceMap*> maps = {&session.resources()};
  ResourceMap& shared = SharedState(session.resources());
  if (&shared != maps[0]) maps.push_back(&shared);
  return maps;
}

bool Declares(const Node& node) {
  return node.op().traits().variable_use == VariableUse::kDeclares;
}

// Returns the name of the variable that a node declares.
std::string VariableNameOf(const Node& node) {
  const auto shared_name = node.attr_or<std::string>("shared_name", "");
  return shared_name.empty() ? node.name() : shared_name;
}

using VariableMap = std::map<std::string, std::shared_ptr<VariableState>>;

VariableMap VariablesOf(Session& session) {
  VariableMap variables;
  for (ResourceMap* map : MapsOf(session)) {
    for (const std::shared_ptr<VariableState>& each : map->All<VariableState>())
      variables.emplace(each->name(), each);
  }
  return variables;
}

absl::Status AssignVariable(const VariableMap& variables, const std::string& name,
                            const Tensors& values) {
  const auto found = variables.find(name);
  if (found == variables.end()) return NotFound("there is no variable '", name, "'");
  VariableState& variable = *found->second;
  if (values.size() != 1 || values[0].dtype() != variable.dtype() ||
      !variable.shape().IsCompatibleWith(values[0].shape())) {
    return InvalidArgument("its value is ", values.empty() ? "missing" : values[0].Description(),
                           ", but the variable has the type ", DataTypeName(variable.dtype()),
                           " and the shape ", variable.shape().ToString());
  }
  if (!variable.on_host()) return Unimplemented("the variable is on another device");
  const MutexLock lock(variable.mutex());
  variable.Set(values[0]);
  return absl::OkStatus();
}

// Returns what a resume without the file loses: everything in the graph that the file would hold.
std::vector<std::string> AllState(const Graph& graph) {
  std::vector<std::string> all;
  const std::vector<ResumableKind> kinds = ResumableKinds();
  for (const auto& node : graph.nodes()) {
    for (const ResumableKind& kind : kinds) {
      if (kind.makes(*node)) all.push_back(absl::StrCat(kind.name, " '", node->name(), "'"));
    }
  }
  return all;
}

std::string Listed(const std::vector<std::string>& lost) {
  constexpr size_t kMost = 20;
  const size_t shown = std::min(lost.size(), kMost);
  std::string text = absl::StrJoin(lost.begin(), lost.begin() + shown, "; ");
  if (shown < lost.size()) absl::StrAppend(&text, "; and ", lost.size() - shown, " more");
  return text;
}

}  // namespace

absl::StatusOr<ResumeState> ResumeState::Take(Session& session, const SaverDef& def) {
  if (session.devices().empty())
    return Unimplemented("a session on a server does not save for an exact resume");
  ResumeState state;
  state.TakeResources(session);
  state.TakeVariables(session, def);
  const Graph& graph = session.graph();
  for (const auto& node : graph.nodes()) {
    const absl::string_view unsaved = UnsavedState(*node);
    if (!unsaved.empty()) state.lost_.push_back(absl::StrCat(node->Label(), ": ", unsaved));
  }
  for (const CollectionItem& item : graph.collection(collections::kQueueRunners)) {
    const auto* runner = std::get_if<std::shared_ptr<CollectionObject>>(&item);
    if (runner != nullptr && *runner != nullptr) {
      state.lost_.push_back(absl::StrCat("queue '", (*runner)->name(),
                                         "': the elements that its queue runner is moving"));
    }
  }
  return state;
}

void ResumeState::TakeResources(Session& session) {
  const Graph& graph = session.graph();
  for (const ResumableKind& kind : ResumableKinds()) {
    std::vector<ResumableState> states;
    for (ResourceMap* map : MapsOf(session)) kind.take(*map, &states, &lost_);
    for (ResumableState& each : states) {
      const Node* const node = FindMaker(graph, kind, each);
      items_.push_back({.kind = kind.name,
                        .node = node == nullptr ? "" : node->name(),
                        .op = node == nullptr ? "" : node->op_name(),
                        .container = std::move(each.container),
                        .name = std::move(each.name),
                        .is_own = each.is_own,
                        .values = std::move(each.values)});
    }
  }
}

void ResumeState::TakeVariables(Session& session, const SaverDef& def) {
  const Graph& graph = session.graph();
  const absl::StatusOr<Output> saved = graph.FindOutput(def.save_tensor_name);
  absl::flat_hash_set<const Node*> in_checkpoint;
  if (saved.ok()) in_checkpoint = Ancestors({saved->node});
  const VariableMap variables = VariablesOf(session);
  for (const auto& node : graph.nodes()) {
    if (!Declares(*node) || in_checkpoint.contains(node.get())) continue;
    const auto found = variables.find(VariableNameOf(*node));
    if (found == variables.end()) continue;
    const std::shared_ptr<VariableState>& variable = found->second;
    absl::StatusOr<Tensor> value = variable->Read();
    if (!value.ok()) continue;
    if (!variable->on_host() || value->dtype() == DT_VARIANT || value->dtype() == DT_RESOURCE) {
      lost_.push_back(absl::StrCat(variable->Describe(), ": its value, which is ",
                                   variable->on_host() ? "no number" : "on another device"));
      continue;
    }
    items_.push_back({.kind = kVariable,
                      .node = node->name(),
                      .op = node->op_name(),
                      .name = variable->name(),
                      .values = {*std::move(value)}});
  }
}

absl::Status ResumeState::CheckNode(const Graph& graph, const Item& item) {
  if (item.node.empty()) return absl::OkStatus();
  const Node* const node = graph.FindNode(item.node);
  if (node != nullptr && node->op_name() == item.op) return absl::OkStatus();
  return InvalidArgument("the graph has ",
                         node == nullptr ? "no such node" : "a node of that name of another op",
                         ": ", node == nullptr ? item.node : node->Label(), " instead of ", item.op,
                         ". Was the file saved with another graph?");
}

absl::Status ResumeState::RestoreResource(Session& session, const ResumableKind* kind,
                                          const Item& item) {
  if (kind == nullptr) return Unimplemented("this version of Weir has no state of this kind");
  return kind->restore(session.resources(), {.kind = item.kind,
                                             .container = item.container,
                                             .name = item.name,
                                             .is_own = item.is_own,
                                             .values = item.values});
}

absl::Status ResumeState::Restore(Session& session) const {
  const Graph& graph = session.graph();
  const auto of_item = [](const Item& item, const absl::Status& status) {
    return absl::Status(status.code(),
                        absl::StrCat(item.kind, " '", item.name, "': ", status.message()));
  };
  std::vector<Operation> makers;
  const std::vector<ResumableKind> kinds = ResumableKinds();
  for (const Item& item : items_) {
    const absl::Status fits = CheckNode(graph, item);
    if (!fits.ok()) return of_item(item, fits);
    const ResumableKind* const kind = FindKind(kinds, item.kind);
    const bool needs_node = item.kind == kVariable || (kind != nullptr && kind->needs_node);
    if (needs_node && !item.node.empty()) makers.emplace_back(graph.FindNode(item.node));
  }
  if (!makers.empty()) WEIR_RETURN_IF_ERROR(session.Run(Feeds{}, Outputs{}, makers).status());
  const VariableMap variables = VariablesOf(session);
  for (const Item& item : items_) {
    const absl::Status restored = item.kind == kVariable
                                      ? AssignVariable(variables, item.name, item.values)
                                      : RestoreResource(session, FindKind(kinds, item.kind), item);
    if (!restored.ok()) return of_item(item, restored);
  }
  return absl::OkStatus();
}

absl::Status ResumeExactly(Session& session, const std::string& checkpoint, bool required) {
  const absl::StatusOr<ResumeState> state = ResumeState::Read(checkpoint);
  const bool has_file =
      !absl::IsNotFound(state.status()) && !absl::IsFailedPrecondition(state.status());
  if (has_file) WEIR_RETURN_IF_ERROR(state.status());
  std::string why;
  if (!has_file) {
    why = absl::StrCat(state.status().message(),
                       "; lost, if it was in use: ", Listed(AllState(session.graph())));
  } else if (!state->lost().empty()) {
    why = absl::StrCat(ResumePath(checkpoint), " lacks ", Listed(state->lost()));
  }
  if (!why.empty() && required) return FailedPrecondition("cannot resume exactly: ", why);
  if (!why.empty()) {
    std::fprintf(stderr, "weir: warning: the run does not resume exactly: %s\n", why.c_str());
  }
  if (!has_file) return absl::OkStatus();
  const absl::Status restored = state->Restore(session);
  if (restored.ok()) return restored;
  return absl::Status(restored.code(),
                      absl::StrCat(ResumePath(checkpoint), ": ", restored.message()));
}

}  // namespace weir
