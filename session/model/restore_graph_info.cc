#include "weir/session/model/restore_graph_info.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "weir/kernels/lib/variable_access.h"
#include "weir/session/plan/variable_use.h"

namespace weir {
namespace {

// The cached result of the last restore in a session. It is stored among the variables of the
// default container, and is forgotten with them: so the states in it are those that steps use.
class CachedRestoreInfo final : public Resource {
 public:
  std::string Describe() const override { return "the cached analysis of the last restore"; }
  void Clear() override { Set(nullptr); }
  std::shared_ptr<const RestoreGraphInfo> Get() {
    const MutexLock lock(mutex_);
    return info_;
  }
  void Set(std::shared_ptr<const RestoreGraphInfo> info) {
    const MutexLock lock(mutex_);
    info_ = std::move(info);
  }

 private:
  Mutex mutex_;
  std::shared_ptr<const RestoreGraphInfo> info_ ABSL_GUARDED_BY(mutex_);
};

// The ops that the analysis distinguishes.
enum class OpKind : uint8_t { kOther, kGroup, kRead, kIdentity, kReshape, kAssign, kVariable };

class OpKinds {
 public:
  explicit OpKinds(const OpRegistry& ops) {
    for (const auto& [name, kind] : {std::pair{"NoOp", OpKind::kGroup},
                                     {"RestoreV2", OpKind::kRead},
                                     {"RestoreSlice", OpKind::kRead},
                                     {"Restore", OpKind::kRead},
                                     {"Reshape", OpKind::kReshape}})
      kinds_.emplace_back(ops.Find(name), kind);
  }
  OpKind KindOf(const Node& node) const {
    for (const auto& [op, kind] : kinds_) {
      if (op == &node.op()) return kind;
    }
    const OpTraits& traits = node.op().traits();
    if (traits.movement == Movement::kIdentity && node.num_inputs() == 1) return OpKind::kIdentity;
    if (traits.variable_use == VariableUse::kReplaces) return OpKind::kAssign;
    if (traits.variable_use == VariableUse::kDeclares) return OpKind::kVariable;
    return OpKind::kOther;
  }

 private:
  std::vector<std::pair<const OpSpec*, OpKind>> kinds_;
};

// Prefetches a node that is visited soon.
void Prefetch(const Node* node) {
  constexpr size_t kLine = 64;
  for (size_t at = 0; at < sizeof(Node); at += kLine)
    __builtin_prefetch(reinterpret_cast<const char*>(node) + at);
}

// Analyzes a restore op. There may be a hundred thousand nodes, and most of the time is spent on
// cache misses: so each node is visited once, the results are stored in arrays indexed by node and
// by output, and nothing is looked up by name.
class RestoreAnalyzer {
 public:
  RestoreAnalyzer(const Graph& graph, Node* restore)
      : graph_(graph), restore_(restore), states_(graph.num_nodes()), info_(new RestoreGraphInfo) {}

  std::unique_ptr<RestoreGraphInfo> Analyze() {
    Walk();
    CountUses();
    for (const Node* reader : info_->readers) {
      for (int i = 0; i < reader->num_outputs(); ++i) {
        info_->first_path.push_back(static_cast<int>(info_->paths.size()));
        Follow({reader->output(i), Count(reader->output(i)) == 1, {}});
      }
    }
    info_->first_path.push_back(static_cast<int>(info_->paths.size()));
    ListFinalNodes();
    auto names = std::make_shared<std::vector<std::string>>();
    for (const RestoreGraphInfo::AssignPath& path : info_->paths)
      names->push_back(path.assign->input(0).node->name());
    info_->assigned = std::move(names);
    info_->restore = Operation(restore_);
    info_->changes_seen = graph_.changes().size();
    return std::move(info_);
  }

 private:
  static constexpr size_t kPrefetchDistance = 16;

  // The state of a node.
  struct NodeState {
    OpKind kind = OpKind::kOther;
    bool visited = false;
    bool has_control_successor =
        false;  // has control edges, possibly through groups, to other nodes
    int first_output = -1;
    int number = -1;  // the index of a variable in `variables`, of an assignment in `paths`
  };
  // A value derived from a reading node's output, on its path to an assignment.
  struct ValueFlow {
    Output value;
    bool only_path = false;  // it has no other users
    std::vector<const Node*> reshapes;
  };

  NodeState& StateOf(const Node* node) { return states_[node->id()]; }
  int IndexOf(const Output& value) { return StateOf(value.node).first_output + value.index; }
  int Count(const Output& value) { return counts_[IndexOf(value)]; }

  void Visit(Node* node) {
    NodeState& node_state = StateOf(node);
    if (node_state.visited) return;
    node_state.visited = true;
    nodes_.push_back(node);
  }

  // Lists the nodes on which `restore` depends, including itself.
  void Walk() {
    const OpKinds kinds(graph_.ops());
    Visit(restore_);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      Node& node = *nodes_[i];
      PrefetchAfter(i);
      NodeState& node_state = StateOf(&node);
      node_state.kind = kinds.KindOf(node);
      node_state.first_output = num_outputs_;
      num_outputs_ += node.num_outputs();
      for (const Output& input : node.inputs()) {
        uses_.emplace_back(input.node->id(), input.index);
        Visit(input.node);
      }
      const auto controls = node.control_inputs();
      for (size_t k = 0; k < controls.size(); ++k) {
        if (k + kPrefetchDistance < controls.size())
          __builtin_prefetch(controls[k + kPrefetchDistance]);
        Visit(controls[k]);
      }
      if (!node.control_inputs().empty() && node_state.kind != OpKind::kGroup)
        MarkControlPredecessors(node);
      if (node_state.kind == OpKind::kRead) info_->readers.push_back(&node);
      if (node_state.kind == OpKind::kVariable) {
        node_state.number = static_cast<int>(info_->variables.size());
        info_->variables.push_back(&node);
      }
      if (IsConsumer(node_state.kind)) consumers_.push_back(&node);
    }
  }

  // Prefetches also what Visit reads of a node's inputs, once the node itself is in the cache.
  void PrefetchAfter(size_t i) const {
    if (i + kPrefetchDistance < nodes_.size()) Prefetch(nodes_[i + kPrefetchDistance]);
    if (i + kPrefetchDistance / 2 >= nodes_.size()) return;
    for (const Output& input : nodes_[i + kPrefetchDistance / 2]->inputs())
      __builtin_prefetch(input.node);
  }

  static bool Passes(OpKind kind) { return kind == OpKind::kIdentity || kind == OpKind::kReshape; }
  static bool IsConsumer(OpKind kind) { return Passes(kind) || kind == OpKind::kAssign; }

  void MarkControlPredecessors(const Node& node) {
    std::vector<const Node*> stack = {&node};
    while (!stack.empty()) {
      const Node* const waiting = stack.back();
      stack.pop_back();
      for (const Node* control : waiting->control_inputs()) {
        NodeState& node_state = StateOf(control);
        if (!node_state.has_control_successor && control->op_name() == "NoOp")
          stack.push_back(control);
        node_state.has_control_successor = true;
      }
    }
  }

  // Counts the uses of each output, and lists its consumers: a linked list for each output, through
  // `next_consumer_`.
  void CountUses() {
    counts_.assign(num_outputs_, 0);
    for (const auto& [node, index] : uses_) ++counts_[states_[node].first_output + index];
    first_consumer_.assign(num_outputs_, -1);
    next_consumer_.assign(consumers_.size(), -1);
    for (int i = static_cast<int>(consumers_.size()) - 1; i >= 0; --i) {
      const Node& consumer = *consumers_[i];
      int& first =
          first_consumer_[IndexOf(consumer.input(Passes(StateOf(&consumer).kind) ? 0 : 1))];
      next_consumer_[i] = std::exchange(first, i);
    }
  }

  // Returns true if the value has one use and the node has no control edges.
  bool HasSingleUse(const Node& node) {
    return node.control_inputs().empty() && !StateOf(&node).has_control_successor &&
           (node.num_outputs() == 0 || Count(node.output(0)) <= 1);
  }
  // Returns true if the assignment is the only use of its variable's node, and only the restore op
  // waits for it.
  bool IsSoleUse(const Node& assign) {
    return StateOf(assign.input(0).node).kind == OpKind::kVariable && HasSingleUse(assign) &&
           Count(assign.input(0)) == 1 &&
           (assign.num_outputs() == 0 || Count(assign.output(0)) == 0);
  }

  // A consumer uses one value, so no node is reached twice.
  void Follow(ValueFlow start) {
    std::vector<ValueFlow> stack = {std::move(start)};
    while (!stack.empty()) {
      const ValueFlow value = std::move(stack.back());
      stack.pop_back();
      for (int i = first_consumer_[IndexOf(value.value)]; i >= 0; i = next_consumer_[i]) {
        const Node& consumer = *consumers_[i];
        NodeState& node_state = StateOf(&consumer);
        if (node_state.kind == OpKind::kAssign) {
          node_state.number = static_cast<int>(info_->paths.size());
          info_->paths.push_back({&consumer, StateOf(consumer.input(0).node).number,
                                  value.only_path && IsSoleUse(consumer), value.reshapes});
          continue;
        }
        ValueFlow next = {consumer.output(0), value.only_path && HasSingleUse(consumer),
                          value.reshapes};
        if (node_state.kind == OpKind::kReshape) next.reshapes.push_back(&consumer);
        stack.push_back(std::move(next));
      }
    }
  }

  void ListFinalNodes() {
    std::vector<bool> listed(states_.size());
    std::vector<Node*> stack = {restore_};
    while (!stack.empty()) {
      Node* const node = stack.back();
      stack.pop_back();
      if (listed[node->id()]) continue;
      listed[node->id()] = true;
      const NodeState& node_state = StateOf(node);
      if (node_state.kind == OpKind::kGroup) {
        stack.insert(stack.end(), node->control_inputs().begin(), node->control_inputs().end());
      } else {
        info_->final_nodes.push_back(
            {node, node_state.kind == OpKind::kAssign ? node_state.number : -1});
      }
    }
  }

  const Graph& graph_;
  Node* const restore_;
  std::vector<NodeState> states_;
  std::vector<Node*> nodes_;
  std::vector<const Node*> consumers_;
  std::vector<std::pair<int, int>> uses_;  // node and output
  int num_outputs_ = 0;
  std::vector<int> counts_, first_consumer_;  // by output
  std::vector<int> next_consumer_;            // by consumer
  std::unique_ptr<RestoreGraphInfo> info_;
};

// Looks up the states of the variables. Returns true if all exist and are in the default container.
bool FindStates(ResourceMap& resources, RestoreGraphInfo* info) {
  bool all = true;
  info->states.clear();
  for (const Node* node : info->variables) {
    const auto [container, name] = VariableKey(*node);
    auto state = SharedState(resources).Lookup<VariableState>(container, name);
    all = all && state != nullptr &&
          (container.empty() || container == ResourceMap::kDefaultContainer);
    info->states.push_back(std::move(state));
  }
  return all;
}

// A variable that several nodes refer to must not be set on behalf of one of them.
void FindShared(RestoreGraphInfo* info) {
  absl::flat_hash_set<const VariableState*> found, shared;
  found.reserve(info->states.size());
  for (const auto& state : info->states)
    if (state != nullptr && !found.insert(state.get()).second) shared.insert(state.get());
  if (shared.empty()) return;
  for (RestoreGraphInfo::AssignPath& path : info->paths) {
    if (path.variable >= 0 && shared.contains(info->states[path.variable].get()))
      path.is_sole_use = false;
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const RestoreGraphInfo>> RestoreGraphInfo::Of(
    const Graph& graph, Node* restore, ResourceMap& resources,
    absl::FunctionRef<absl::Status(const std::vector<Operation>&)> run) {
  const auto cache = SharedState(resources).LookupOrCreate<CachedRestoreInfo>(
      "", "last_restore", [] { return std::make_shared<CachedRestoreInfo>(); });
  if (auto info = cache->Get(); info != nullptr && info->restore == Operation(restore) &&
                                info->changes_seen == graph.changes().size())
    return info;
  graph.KeepChanges();
  const std::shared_ptr<RestoreGraphInfo> info = RestoreAnalyzer(graph, restore).Analyze();
  bool is_complete = FindStates(resources, info.get());
  std::vector<Operation> missing;
  for (size_t i = 0; i < info->variables.size(); ++i)
    if (info->states[i] == nullptr) missing.emplace_back(info->variables[i]);
  if (!missing.empty()) {
    WEIR_RETURN_IF_ERROR(run(missing));
    is_complete = FindStates(resources, info.get());
  }
  FindShared(info.get());
  cache->Set(is_complete ? info : nullptr);
  return info;
}

}  // namespace weir
