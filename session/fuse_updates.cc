#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "weir/session/fusion.h"
#include "weir/session/variable_use.h"

// Element-wise ops whose results all are assigned to variables become one node, _FusedUpdate, which
// writes a variable where it lies if its value is an argument: an optimizer that a graph spells out
// in small ops, as those of language models do, or a moving average. As a _FusedElementwise and its
// Assigns they write a new tensor for each variable, of memory that was not in the caches.
//
// A value that nobody else takes is read when the node runs, not when the ReadVariableOp would have
// run. So the variable may be written by nobody else in the step. Other reads of the variable get
// it before or after, as they are ordered to the Assign: what they have got they share, and while
// they do, the variable is given a new tensor, as before (kernels/fused_elementwise.cc). A weight,
// which the gradients of its layer take, is shared until these have run.
//
// The node waits for what its Assigns and reads wait for, unless that comes after an Assign.
namespace weir {

namespace {

// Nodes behind the Assigns that are looked at for what one of them waits for.
constexpr size_t kMostFollowed = 200;

class UpdateFusion : public Fusion {
 public:
  using Fusion::Fusion;

  absl::Status Run() {
    for (size_t id = 0; id < plan_.nodes.size() && !is_unclear_; ++id) {
      if (plan_.nodes[id].Is("_FusedElementwise") && IsFusable(plan_.nodes[id]))
        Take(static_cast<int>(id));
    }
    return taken_ ? SortTopologically(plan_) : absl::OkStatus();
  }

 private:
  // A result, and the variable that it is assigned to.
  struct Update {
    int assign = -1;   // the node
    PlanValue handle;  // or reference
    int variable = -1;
    // Arguments that are the variable's value, for this node alone, and the nodes that they come
    // from; and one that others take too, or -1.
    IndexList own = {};
    std::vector<int> reads = {};
    int shared = -1;

    // The node reads the variable itself.
    bool is_read() const { return !own.empty() && shared < 0; }
  };

  // Who takes a value of a node, or waits for it.
  struct Taker {
    int node = -1, input = -1;  // -1: waits
    int output = 0;
  };

  void FindTakers() {
    takers_.resize(plan_.nodes.size());
    for (int i = 0; i < static_cast<int>(plan_.nodes.size()); ++i) {
      const PlanNode& n = plan_.nodes[i];
      for (int k = 0; k < static_cast<int>(n.inputs.size()); ++k)
        takers_[n.inputs[k].node].push_back({i, k, n.inputs[k].output});
      for (const int control : n.controls) takers_[control].push_back({i, -1, 0});
    }
    for (const PlanValue& v : plan_.fetches) leaves_.insert(v.node);
    for (const PlanGraph::Carry& c : plan_.carries) {
      leaves_.insert(c.next.node);
      takers_[c.next.node].push_back({c.carry, -1, c.next.output});
    }
    is_unclear_ =
        absl::c_any_of(plan_.nodes, [this](const PlanNode& n) { return ChoosesHandle(n); });
    variables_ = FindVariables(plan_);
    for (const VariableAccess& access : FindAccesses(plan_, variables_))
      accesses_[access.variable].push_back(access);
  }

  // Of several handles that it takes, the node gives one on: FindVariables knows the first.
  bool ChoosesHandle(const PlanNode& n) const {
    if (n.removed || n.kind != PlanNode::Kind::kOp || n.node->num_outputs() == 0) return false;
    return IsHandle(n.node->output_type(0)) &&
           absl::c_count_if(n.inputs, [&](const PlanValue& v) {
             return IsHandle(plan_.nodes[v.node].type(v.output));
           }) > 1;
  }

  void Take(int id) {
    if (takers_.empty()) FindTakers();
    if (is_unclear_) return;
    const PlanNode& n = plan_.nodes[id];
    if (leaves_.contains(id) || n.loop >= 0 || n.may_be_dead || !n.controls.empty() ||
        absl::c_linear_search(plan_.targets, id)) {
      return;
    }
    const int count = n.node->num_outputs();
    std::vector<Update> updates(count);
    for (const Taker& taker : takers_[id]) {
      if (taker.input != 1 || updates[taker.output].assign >= 0) return;
      std::optional<Update> update = UpdateBy(taker.node, id);
      if (!update) return;
      updates[taker.output] = *update;
    }
    if (absl::c_any_of(updates, [](const Update& u) { return u.assign < 0; }) ||
        absl::c_all_of(updates, [](const Update& u) { return u.own.empty() && u.shared < 0; })) {
      return;
    }
    const std::optional<std::set<int>> waits = WaitsOf(updates);
    if (waits) Become(id, updates, *waits);
  }

  // Of the node `from`, by an Assign that nobody takes a value of.
  std::optional<Update> UpdateBy(int assign, int from) const {
    const PlanNode& a = plan_.nodes[assign];
    const PlanNode& n = plan_.nodes[from];
    const bool is_ref = a.Is("Assign");
    if ((!is_ref && !a.Is("AssignVariableOp")) || !IsBuiltin(a) || !a.runs_with(n) ||
        a.may_be_dead || leaves_.contains(assign) || a.device != n.device ||
        absl::c_any_of(takers_[assign], [](const Taker& t) { return t.input >= 0; })) {
      return std::nullopt;
    }
    Update update{.assign = assign, .handle = a.inputs[0]};
    const PlanNode& handle = plan_.nodes[update.handle.node];
    update.variable = variables_.handle_of[update.handle.node];
    if (!(IsVariable(handle) || handle.kind == PlanNode::Kind::kFeed) || update.variable < 0 ||
        !handle.controls.empty() || !KeepsShape(a, handle)) {
      return std::nullopt;
    }
    for (const VariableAccess& access : accesses_.at(update.variable)) {
      if (access.node != assign && !OnlyReads(plan_.nodes[access.node])) return std::nullopt;
    }
    FindReads(from, &update);
    return update;
  }

  // The variable cannot have a value of another shape from then on.
  static bool KeepsShape(const PlanNode& assign, const PlanNode& handle) {
    if (assign.node->attr_or<bool>("validate_shape", assign.Is("Assign"))) return true;
    return assign.Is("AssignVariableOp") && IsVariable(handle) &&
           handle.node->attr_or<Shape>("shape", Shape::UnknownRank()).IsFullyDefined();
  }

  // Of nodes with a handle. Functions that are given one may write.
  static bool OnlyReads(const PlanNode& n) {
    return n.kind == PlanNode::Kind::kRead ||
           n.Is("ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape",
                "VarIsInitializedOp", "IsVariableInitialized");
  }

  // The arguments that are the variable's value: the same for all, since the Assign comes after
  // all.
  void FindReads(int by, Update* update) const {
    const PlanNode& n = plan_.nodes[by];
    for (int k = 0; k < static_cast<int>(n.inputs.size()); ++k) {
      const PlanValue& value = n.inputs[k];
      if (!IsValueOf(value, update->variable) || ShapeOf(value) != n.shapes[0]) continue;
      const std::vector<int> reads = ReadsFor(value.node);
      if (reads.empty()) {
        update->shared = k;
      } else {
        update->own.push_back(k);
        update->reads.insert(update->reads.end(), reads.begin(), reads.end());
      }
    }
  }

  bool IsRead(const PlanNode& n) const {
    return n.loop < 0 && n.value_loop < 0 &&
           (n.kind == PlanNode::Kind::kRead || (n.Is("ReadVariableOp") && IsBuiltin(n)));
  }
  bool HandsOn(const PlanNode& n) const {
    return n.loop < 0 && n.value_loop < 0 && n.Is("Identity") && IsFusable(n);
  }

  bool IsValueOf(PlanValue value, int variable) const {
    while (value.output == 0 && HandsOn(plan_.nodes[value.node]))
      value = plan_.nodes[value.node].inputs[0];
    const PlanNode& read = plan_.nodes[value.node];
    return IsRead(read) && variables_.handle_of[read.inputs[0].node] == variable;
  }

  // The nodes that the value comes from, if they serve nobody else: the last is the read.
  std::vector<int> ReadsFor(int value) const {
    std::vector<int> reads;
    while (takers_[value].size() == 1 && !leaves_.contains(value) &&
           !absl::c_linear_search(plan_.targets, value)) {
      const PlanNode& n = plan_.nodes[value];
      reads.push_back(value);
      if (IsRead(n)) return reads;
      value = n.inputs[0].node;
    }
    return {};
  }

  // What waits for the node, also by way of others, and the node itself. Nothing if that is a lot,
  // or a loop is among it, behind all of which comes whatever takes something from it.
  std::optional<std::set<int>> Behind(int id) const {
    std::set<int> seen = {id};
    std::vector<int> stack = {id};
    while (!stack.empty()) {
      const int next = stack.back();
      stack.pop_back();
      for (const Taker& taker : takers_[next]) {
        if (plan_.nodes[taker.node].loop >= 0 || plan_.nodes[taker.node].value_loop >= 0)
          return std::nullopt;
        if (seen.insert(taker.node).second) stack.push_back(taker.node);
      }
      if (seen.size() > kMostFollowed) return std::nullopt;
    }
    return seen;
  }

  // What the Assigns and the reads wait for. Nothing if they cannot all be at once: one of them
  // comes after another, or a read of a variable after the Assign of another one alone.
  std::optional<std::set<int>> WaitsOf(const std::vector<Update>& updates) const {
    std::set<int> waits;
    const auto add = [&](int id) {
      waits.insert(plan_.nodes[id].controls.begin(), plan_.nodes[id].controls.end());
    };
    std::vector<std::set<int>> behind;
    for (const Update& u : updates) {
      add(u.assign);
      absl::c_for_each(u.reads, add);
      std::optional<std::set<int>> nodes = Behind(u.assign);
      if (!nodes) return std::nullopt;
      behind.push_back(*std::move(nodes));
    }
    for (const std::set<int>& nodes : behind) {
      if (absl::c_any_of(waits, [&](int wait) { return nodes.contains(wait); }))
        return std::nullopt;
      for (size_t j = 0; j < updates.size(); ++j) {
        for (const VariableAccess& access : accesses_.at(updates[j].variable)) {
          if (nodes.contains(access.node) && !behind[j].contains(access.node)) return std::nullopt;
        }
      }
    }
    return waits;
  }

  void Become(int id, const std::vector<Update>& updates, const std::set<int>& waits) {
    PlanNode& n = plan_.nodes[id];
    const Node& was = *n.node;
    const DataType type = was.output_type(0);
    std::vector<PlanValue> inputs, args;
    std::vector<bool> reads;
    // By argument of the old node: which one of the new program it is, and what it is the same as.
    std::vector<int64_t> place(n.inputs.size(), -1);
    std::vector<int> same_as(n.inputs.size(), -1);
    int64_t num_reads = 0, num_refs = 0;
    for (const Update& u : updates) {
      inputs.push_back(u.handle);
      reads.push_back(u.is_read());
      num_refs += IsRef(plan_.nodes[u.handle.node].type(u.handle.output)) ? 1 : 0;
      for (const int k : u.own) u.is_read() ? place[k] = num_reads : same_as[k] = u.shared;
      num_reads += u.is_read() ? 1 : 0;
    }
    const auto num_variables = static_cast<int64_t>(updates.size());
    if (num_refs != 0 && num_refs != num_variables) return;  // references would follow on handles
    for (int k = 0; k < static_cast<int>(place.size()); ++k) {
      if (place[k] >= 0 || same_as[k] >= 0) continue;
      place[k] = num_reads + static_cast<int64_t>(args.size());
      args.push_back(n.inputs[k]);
    }
    for (size_t k = 0; k < place.size(); ++k) {
      if (place[k] < 0) place[k] = place[same_as[k]];
    }
    std::vector<int64_t> operands = was.attr_or<std::vector<int64_t>>("operands", {});
    const auto old_count = static_cast<int64_t>(place.size());
    const int64_t count = num_reads + static_cast<int64_t>(args.size());
    for (int64_t& operand : operands) {
      if (operand >= 0)
        operand = operand < old_count ? place[operand] : operand - old_count + count;
    }
    NodeBuilder builder(made(), "_FusedUpdate");
    builder.Name(was.name())
        .InputList(Outputs(num_variables - num_refs, MakePlaceholder(DT_RESOURCE)))
        .InputList(num_refs == 0 ? Outputs() : Outputs(num_refs, StandForVariable(type)))
        .InputList(Outputs(args.size(), MakePlaceholder(type)))
        .Attr("T", type)
        .Attr("reads", reads)
        .Attr("shape", n.shapes[0])
        .Attr("fused_ops", was.attr_or<std::vector<std::string>>("fused_ops", {}))
        .Attr("operands", operands)
        .Attr("params", was.attr_or<std::vector<float>>("params", {}))
        .Attr("others_of", was.attr_or<std::vector<int64_t>>("others_of", {}));
    const Node* const node = builder.Build();
    if (!made().TakeStatus().ok() || node == nullptr) return;
    inputs.insert(inputs.end(), args.begin(), args.end());
    if (!Replace(id, *node, inputs)) return;
    n.shapes.clear();
    n.controls.assign(waits.begin(), waits.end());
    for (const int wait : waits) takers_[wait].push_back({id, -1, 0});
    for (const Update& u : updates) {
      n.cost_ns += plan_.nodes[u.assign].cost_ns;
      plan_.nodes[u.assign].Remove();
      for (const int read : u.reads) plan_.nodes[read].Remove();
      for (const Taker& taker : takers_[u.assign])
        absl::c_replace(plan_.nodes[taker.node].controls, u.assign, id);
      absl::c_replace(plan_.targets, u.assign, id);
      // Another update may wait for it.
      takers_[id].insert(takers_[id].end(), takers_[u.assign].begin(), takers_[u.assign].end());
    }
    taken_ = true;
  }

  bool taken_ = false;
  bool is_unclear_ = false;                 // which variables nodes use
  std::vector<std::vector<Taker>> takers_;  // by node
  std::set<int> leaves_;                    // the step, or the iteration
  VariableValues variables_;
  absl::flat_hash_map<int, std::vector<VariableAccess>> accesses_;  // by variable
};

}  // namespace

absl::Status FuseUpdates(PlanGraph& plan, const PlanEnvironment& env) {
  return UpdateFusion(plan, env).Run();
}

}  // namespace weir
