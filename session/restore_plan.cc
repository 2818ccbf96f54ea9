#include "weir/session/restore_plan.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "weir/kernels/variable_access.h"
#include "weir/session/variable_use.h"

namespace weir {
namespace {

// The cached result of the last restore in a session. It is stored among the variables of the
// default container, and is forgotten with them: so the states in it are those that steps use.
class LastRestore final : public Resource {
 public:
  std::string Describe() const override { return "the plan of the last restore"; }
  void Clear() override { Set(nullptr); }
  std::shared_ptr<const RestorePlan> Get() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return plan_;
  }
  void Set(std::shared_ptr<const RestorePlan> plan) {
    const std::lock_guard<std::mutex> lock(mutex_);
    plan_ = std::move(plan);
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<const RestorePlan> plan_;
};

// The ops that the analysis distinguishes.
enum class Kind : uint8_t { kOther, kGroup, kRead, kIdentity, kReshape, kAssign, kVariable };

class Kinds {
 public:
  explicit Kinds(const OpRegistry& ops) {
    for (const auto& [name, kind] : {std::pair{"NoOp", Kind::kGroup},
                                     {"RestoreV2", Kind::kRead},
                                     {"RestoreSlice", Kind::kRead},
                                     {"Restore", Kind::kRead},
                                     {"Identity", Kind::kIdentity},
                                     {"Reshape", Kind::kReshape},
                                     {"Assign", Kind::kAssign},
                                     {"AssignVariableOp", Kind::kAssign},
                                     {"VarHandleOp", Kind::kVariable},
                                     {"VariableV2", Kind::kVariable},
                                     {"Variable", Kind::kVariable}})
      kinds_.emplace_back(ops.Find(name), kind);
  }
  Kind Of(const Node& node) const {
    for (const auto& [op, kind] : kinds_) {
      if (op == &node.op()) return kind;
    }
    return Kind::kOther;
  }

 private:
  std::vector<std::pair<const OpSpec*, Kind>> kinds_;
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
class Planner {
 public:
  Planner(const Graph& graph, Node* restore)
      : graph_(graph), restore_(restore), seen_(graph.num_nodes()), plan_(new RestorePlan) {}

  std::unique_ptr<RestorePlan> Make() {
    Walk();
    CountUses();
    for (const Node* reader : plan_->readers) {
      for (int i = 0; i < reader->num_outputs(); ++i) {
        plan_->first_way.push_back(static_cast<int>(plan_->paths.size()));
        Follow({reader->output(i), Count(reader->output(i)) == 1, {}});
      }
    }
    plan_->first_way.push_back(static_cast<int>(plan_->paths.size()));
    ListLasts();
    auto names = std::make_shared<std::vector<std::string>>();
    for (const RestorePlan::AssignPath& path : plan_->paths)
      names->push_back(path.assign->input(0).node->name());
    plan_->assigned = std::move(names);
    plan_->restore = Operation(restore_);
    plan_->changes_seen = graph_.changes().size();
    return std::move(plan_);
  }

 private:
  static constexpr size_t kAhead = 16;

  // The state of a node.
  struct Seen {
    Kind kind = Kind::kOther;
    bool visited = false;
    bool awaited = false;  // has control edges, possibly through groups, to other nodes
    int first_output = -1;
    int number = -1;  // the index of a variable in `variables`, of an assignment in `paths`
  };
  // A value derived from a reading node's output, on its path to an assignment.
  struct Flowing {
    Output value;
    bool only_way = false;  // it has no other users
    std::vector<const Node*> reshapes;
  };

  Seen& Of(const Node* node) { return seen_[node->id()]; }
  int IndexOf(const Output& value) { return Of(value.node).first_output + value.index; }
  int Count(const Output& value) { return counts_[IndexOf(value)]; }

  void Visit(Node* node) {
    Seen& seen = Of(node);
    if (seen.visited) return;
    seen.visited = true;
    nodes_.push_back(node);
  }

  // Lists the nodes on which `restore` depends, including itself.
  void Walk() {
    const Kinds kinds(graph_.ops());
    Visit(restore_);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      Node& node = *nodes_[i];
      PrefetchAfter(i);
      Seen& seen = Of(&node);
      seen.kind = kinds.Of(node);
      seen.first_output = num_outputs_;
      num_outputs_ += node.num_outputs();
      for (const Output& input : node.inputs()) {
        uses_.emplace_back(input.node->id(), input.index);
        Visit(input.node);
      }
      const auto controls = node.control_inputs();
      for (size_t k = 0; k < controls.size(); ++k) {
        if (k + kAhead < controls.size()) __builtin_prefetch(controls[k + kAhead]);
        Visit(controls[k]);
      }
      if (!node.control_inputs().empty() && seen.kind != Kind::kGroup) Await(node);
      if (seen.kind == Kind::kRead) plan_->readers.push_back(&node);
      if (seen.kind == Kind::kVariable) {
        seen.number = static_cast<int>(plan_->variables.size());
        plan_->variables.push_back(&node);
      }
      if (IsTaker(seen.kind)) takers_.push_back(&node);
    }
  }

  // Prefetches also what Visit reads of a node's inputs, once the node itself is in the cache.
  void PrefetchAfter(size_t i) const {
    if (i + kAhead < nodes_.size()) Prefetch(nodes_[i + kAhead]);
    if (i + kAhead / 2 >= nodes_.size()) return;
    for (const Output& input : nodes_[i + kAhead / 2]->inputs()) __builtin_prefetch(input.node);
  }

  static bool Passes(Kind kind) { return kind == Kind::kIdentity || kind == Kind::kReshape; }
  static bool IsTaker(Kind kind) { return Passes(kind) || kind == Kind::kAssign; }

  void Await(const Node& node) {
    std::vector<const Node*> stack = {&node};
    while (!stack.empty()) {
      const Node* const waiting = stack.back();
      stack.pop_back();
      for (const Node* control : waiting->control_inputs()) {
        Seen& seen = Of(control);
        if (!seen.awaited && control->op_name() == "NoOp") stack.push_back(control);
        seen.awaited = true;
      }
    }
  }

  // Counts the uses of each output, and lists its consumers: a linked list for each output, through
  // `next_`.
  void CountUses() {
    counts_.assign(num_outputs_, 0);
    for (const auto& [node, index] : uses_) ++counts_[seen_[node].first_output + index];
    first_taker_.assign(num_outputs_, -1);
    next_.assign(takers_.size(), -1);
    for (int i = static_cast<int>(takers_.size()) - 1; i >= 0; --i) {
      const Node& taker = *takers_[i];
      int& first = first_taker_[IndexOf(taker.input(Passes(Of(&taker).kind) ? 0 : 1))];
      next_[i] = std::exchange(first, i);
    }
  }

  // Returns true if the value has one use and the node has no control edges.
  bool IsOnlyStep(const Node& node) {
    return node.control_inputs().empty() && !Of(&node).awaited &&
           (node.num_outputs() == 0 || Count(node.output(0)) <= 1);
  }
  // Returns true if the assignment is the only use of its variable's node, and only the restore op
  // waits for it.
  bool IsAlone(const Node& assign) {
    return Of(assign.input(0).node).kind == Kind::kVariable && IsOnlyStep(assign) &&
           Count(assign.input(0)) == 1 &&
           (assign.num_outputs() == 0 || Count(assign.output(0)) == 0);
  }

  // A consumer uses one value, so no node is reached twice.
  void Follow(Flowing start) {
    std::vector<Flowing> stack = {std::move(start)};
    while (!stack.empty()) {
      const Flowing value = std::move(stack.back());
      stack.pop_back();
      for (int i = first_taker_[IndexOf(value.value)]; i >= 0; i = next_[i]) {
        const Node& taker = *takers_[i];
        Seen& seen = Of(&taker);
        if (seen.kind == Kind::kAssign) {
          seen.number = static_cast<int>(plan_->paths.size());
          plan_->paths.push_back({&taker, Of(taker.input(0).node).number,
                                  value.only_way && IsAlone(taker), value.reshapes});
          continue;
        }
        Flowing next = {taker.output(0), value.only_way && IsOnlyStep(taker), value.reshapes};
        if (seen.kind == Kind::kReshape) next.reshapes.push_back(&taker);
        stack.push_back(std::move(next));
      }
    }
  }

  void ListLasts() {
    std::vector<bool> listed(seen_.size());
    std::vector<Node*> stack = {restore_};
    while (!stack.empty()) {
      Node* const node = stack.back();
      stack.pop_back();
      if (listed[node->id()]) continue;
      listed[node->id()] = true;
      const Seen& seen = Of(node);
      if (seen.kind == Kind::kGroup) {
        stack.insert(stack.end(), node->control_inputs().begin(), node->control_inputs().end());
      } else {
        plan_->lasts.push_back({node, seen.kind == Kind::kAssign ? seen.number : -1});
      }
    }
  }

  const Graph& graph_;
  Node* const restore_;
  std::vector<Seen> seen_;
  std::vector<Node*> nodes_;
  std::vector<const Node*> takers_;
  std::vector<std::pair<int, int>> uses_;  // node and output
  int num_outputs_ = 0;
  std::vector<int> counts_, first_taker_;  // by output
  std::vector<int> next_;                  // by consumer
  std::unique_ptr<RestorePlan> plan_;
};

// Looks up the states of the variables. Returns true if all exist and are in the default container.
bool FindStates(ResourceMap& resources, RestorePlan* plan) {
  bool all = true;
  plan->states.clear();
  for (const Node* node : plan->variables) {
    const auto [container, name] = VariableKey(*node);
    auto state = SharedState(resources).Lookup<VariableState>(container, name);
    all = all && state != nullptr &&
          (container.empty() || container == ResourceMap::kDefaultContainer);
    plan->states.push_back(std::move(state));
  }
  return all;
}

// A variable that several nodes refer to must not be set on behalf of one of them.
void FindShared(RestorePlan* plan) {
  absl::flat_hash_set<const VariableState*> found, shared;
  found.reserve(plan->states.size());
  for (const auto& state : plan->states)
    if (state != nullptr && !found.insert(state.get()).second) shared.insert(state.get());
  if (shared.empty()) return;
  for (RestorePlan::AssignPath& path : plan->paths) {
    if (path.variable >= 0 && shared.contains(plan->states[path.variable].get()))
      path.stands_alone = false;
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const RestorePlan>> RestorePlan::Of(
    const Graph& graph, Node* restore, ResourceMap& resources,
    absl::FunctionRef<absl::Status(const std::vector<Operation>&)> run) {
  const auto kept = SharedState(resources).LookupOrCreate<LastRestore>(
      "", "last_restore", [] { return std::make_shared<LastRestore>(); });
  if (auto plan = kept->Get(); plan != nullptr && plan->restore == Operation(restore) &&
                               plan->changes_seen == graph.changes().size())
    return plan;
  graph.KeepChanges();
  const std::shared_ptr<RestorePlan> plan = Planner(graph, restore).Make();
  bool is_complete = FindStates(resources, plan.get());
  std::vector<Operation> missing;
  for (size_t i = 0; i < plan->variables.size(); ++i)
    if (plan->states[i] == nullptr) missing.emplace_back(plan->variables[i]);
  if (!missing.empty()) {
    WEIR_RETURN_IF_ERROR(run(missing));
    is_complete = FindStates(resources, plan.get());
  }
  FindShared(plan.get());
  kept->Set(is_complete ? plan : nullptr);
  return plan;
}

}  // namespace weir
