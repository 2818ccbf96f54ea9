#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/external_waits.h"
#include "weir/session/plan/fusion.h"
#include "weir/session/plan/variable_use.h"

// Fuses elementwise ops whose results are all assigned to variables into one node, _FusedUpdate,
// which updates a variable in place if its value is an argument: an optimizer that a graph
// decomposes into small ops, as those of language models do, or a moving average. A
// _FusedElementwise and its Assigns write a new tensor for each variable, in memory that is not in
// the caches.
//
// A value that has no other users is read when the node runs, not when the ReadVariableOp would
// have run. So no other node of the step may write the variable. Other reads of the variable run
// before or after, as they are ordered with respect to the Assign: they share the buffer of the
// value, and while they do, the variable gets a new tensor, as before
// (kernels/math/fused_elementwise.cc). A weight that the gradients of its layer use is shared until
// these have run.
//
// The node has the control inputs of its Assigns and reads, unless one of these comes after an
// Assign, or waits for something outside of the step that another Assign does not wait for.
namespace weir {

namespace {

// How many descendants of an Assign are visited, to find control inputs among them.
constexpr size_t kMaxVisited = 200;

class UpdateFusion : public Fusion {
 public:
  using Fusion::Fusion;

  absl::Status Run() {
    for (size_t id = 0; id < plan_.nodes.size() && !has_ambiguous_handles_; ++id) {
      if (plan_.nodes[id].Is("_FusedElementwise") && IsFusable(plan_.nodes[id]))
        TryFuse(static_cast<int>(id));
    }
    return changed_ ? SortTopologically(plan_) : absl::OkStatus();
  }

 private:
  // A result of the node and the variable that it is assigned to.
  struct Update {
    int assign = -1;   // the node
    PlanValue handle;  // or reference
    int variable = -1;
    // Arguments that are the variable's value and have no other user, and the nodes that compute
    // them; and an argument with other users, or -1.
    IndexList own = {};
    std::vector<int> reads = {};
    int shared = -1;

    // True if the fused node reads the variable itself.
    bool is_read() const { return !own.empty() && shared < 0; }
  };

  void FindVariableUses() {
    has_ambiguous_handles_ =
        absl::c_any_of(plan_.nodes, [this](const PlanNode& n) { return ChoosesHandle(n); });
    variables_ = FindVariables(plan_);
    for (const VariableAccess& access : FindAccesses(plan_, *variables_))
      accesses_[access.variable].push_back(access);
    external_waits_.emplace(plan_);
  }

  // True if the node takes several handles and returns one of them: FindVariables assumes that it
  // is the first.
  bool ChoosesHandle(const PlanNode& n) const {
    if (n.removed || n.kind != PlanNode::Kind::kOp || n.node->num_outputs() == 0) return false;
    return IsHandle(n.node->output_type(0)) &&
           absl::c_count_if(n.inputs, [&](const PlanValue& v) {
             return IsHandle(plan_.nodes[v.node].type(v.output));
           }) > 1;
  }

  void TryFuse(int id) {
    if (!variables_) FindVariableUses();
    if (has_ambiguous_handles_) return;
    const PlanNode& n = plan_.nodes[id];
    if (uses().Escapes(id) || n.loop >= 0 || n.may_be_dead || !n.controls.empty()) return;
    const int count = n.node->num_outputs();
    std::vector<Update> updates(count);
    for (const PlanUse& use : uses().Of(id)) {
      if (!use.is_input() || use.input != 1 || updates[use.output].assign >= 0) return;
      std::optional<Update> update = MatchUpdate(use.user, id);
      if (!update) return;
      updates[use.output] = *update;
    }
    if (absl::c_any_of(updates, [](const Update& u) { return u.assign < 0; }) ||
        absl::c_all_of(updates, [](const Update& u) { return u.own.empty() && u.shared < 0; })) {
      return;
    }
    const std::optional<std::set<int>> controls = CollectControls(updates);
    if (controls) ReplaceByUpdate(id, updates, *controls);
  }

  // Matches an Assign of a result of the node `from`; no node may use the value of the Assign.
  std::optional<Update> MatchUpdate(int assign, int from) {
    const PlanNode& a = plan_.nodes[assign];
    const PlanNode& n = plan_.nodes[from];
    if (!a.Is(VariableUse::kReplaces) || !IsBuiltin(a) || !a.runs_with(n) || a.may_be_dead ||
        a.device != n.device || absl::c_any_of(uses().Of(assign), TakesValue)) {
      return std::nullopt;
    }
    Update update{.assign = assign, .handle = a.inputs[0]};
    const PlanNode& handle = plan_.nodes[update.handle.node];
    update.variable = variables_->handle_of[update.handle.node];
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

  // True for a use of a node's value, and not only of its completion.
  static bool TakesValue(const PlanUse& use) {
    return use.kind != PlanUse::Kind::kControl && use.kind != PlanUse::Kind::kTarget;
  }

  // True if the variable cannot change its shape by this Assign or later.
  static bool KeepsShape(const PlanNode& assign, const PlanNode& handle) {
    const bool is_ref = IsRef(assign.node->input_type(0));
    if (assign.node->attr_or<bool>("validate_shape", is_ref)) return true;
    return !is_ref && IsVariable(handle) &&
           handle.node->attr_or<Shape>("shape", Shape::UnknownRank()).IsFullyDefined();
  }

  // True if a node that takes a handle only reads. Functions that take a handle may write.
  static bool OnlyReads(const PlanNode& n) {
    return n.kind == PlanNode::Kind::kRead || n.Is(VariableUse::kReads) ||
           n.Is(VariableUse::kReadsPart) || n.Is(VariableUse::kReadsShape) ||
           n.Is(VariableUse::kTests);
  }

  // Finds the arguments that are the variable's value. They are all the same value, since the
  // Assign comes after all reads.
  void FindReads(int by, Update* update) {
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
           (n.kind == PlanNode::Kind::kRead || (n.Is(VariableUse::kReads) && IsBuiltin(n)));
  }
  bool ForwardsValue(const PlanNode& n) const {
    return n.loop < 0 && n.value_loop < 0 && n.is_identity() && IsFusable(n);
  }

  bool IsValueOf(PlanValue value, int variable) const {
    while (value.output == 0 && ForwardsValue(plan_.nodes[value.node]))
      value = plan_.nodes[value.node].inputs[0];
    const PlanNode& read = plan_.nodes[value.node];
    return IsRead(read) && variables_->handle_of[read.inputs[0].node] == variable;
  }

  // Returns the nodes that compute the value, if they have no other users; the last of them is the
  // read.
  std::vector<int> ReadsFor(int value) {
    std::vector<int> reads;
    while (uses().Of(value).size() == 1 && !uses().Escapes(value)) {
      const PlanNode& n = plan_.nodes[value];
      reads.push_back(value);
      if (IsRead(n)) return reads;
      value = n.inputs[0].node;
    }
    return {};
  }

  // Returns the node and its descendants. nullopt if there are too many, or if one of them is in a
  // loop: everything that uses an output of a loop comes after all of it.
  std::optional<std::set<int>> Descendants(int id) {
    std::set<int> visited = {id};
    std::vector<int> stack = {id};
    while (!stack.empty()) {
      const int next = stack.back();
      stack.pop_back();
      for (const PlanUse& use : uses().Of(next)) {
        if (use.user < 0) continue;
        if (plan_.nodes[use.user].loop >= 0 || plan_.nodes[use.user].value_loop >= 0)
          return std::nullopt;
        if (visited.insert(use.user).second) stack.push_back(use.user);
      }
      if (visited.size() > kMaxVisited) return std::nullopt;
    }
    return visited;
  }

  // Returns the control inputs of the Assigns and the reads. nullopt if one node cannot have them
  // all: one of them comes after an Assign, or a read of a variable comes after the Assign of
  // another variable alone.
  std::optional<std::set<int>> CollectControls(const std::vector<Update>& updates) {
    std::set<int> controls;
    const auto add = [&](int id) {
      controls.insert(plan_.nodes[id].controls.begin(), plan_.nodes[id].controls.end());
    };
    std::vector<std::set<int>> descendants;
    for (const Update& u : updates) {
      add(u.assign);
      absl::c_for_each(u.reads, add);
      std::optional<std::set<int>> nodes = Descendants(u.assign);
      if (!nodes) return std::nullopt;
      descendants.push_back(*std::move(nodes));
    }
    for (const Update& u : updates) {
      if (!absl::c_all_of(controls, [&](int c) { return external_waits_->MayOrder(c, u.assign); }))
        return std::nullopt;
    }
    for (const std::set<int>& nodes : descendants) {
      if (absl::c_any_of(controls, [&](int control) { return nodes.contains(control); }))
        return std::nullopt;
      for (size_t j = 0; j < updates.size(); ++j) {
        for (const VariableAccess& access : accesses_.at(updates[j].variable)) {
          if (nodes.contains(access.node) && !descendants[j].contains(access.node))
            return std::nullopt;
        }
      }
    }
    return controls;
  }

  void ReplaceByUpdate(int id, const std::vector<Update>& updates, const std::set<int>& controls) {
    PlanNode& n = plan_.nodes[id];
    const Node& old_node = *n.node;
    const DataType type = old_node.output_type(0);
    std::vector<PlanValue> inputs, args;
    std::vector<bool> reads;
    // By argument of the old node: its index in the new program, and another argument that is the
    // same value.
    std::vector<int64_t> new_index(n.inputs.size(), -1);
    std::vector<int> same_as(n.inputs.size(), -1);
    int64_t num_reads = 0, num_refs = 0;
    for (const Update& u : updates) {
      inputs.push_back(u.handle);
      reads.push_back(u.is_read());
      num_refs += IsRef(plan_.nodes[u.handle.node].type(u.handle.output)) ? 1 : 0;
      for (const int k : u.own) u.is_read() ? new_index[k] = num_reads : same_as[k] = u.shared;
      num_reads += u.is_read() ? 1 : 0;
    }
    const auto num_variables = static_cast<int64_t>(updates.size());
    if (num_refs != 0 && num_refs != num_variables)
      return;  // references would follow handles in the list of inputs
    for (int k = 0; k < static_cast<int>(new_index.size()); ++k) {
      if (new_index[k] >= 0 || same_as[k] >= 0) continue;
      new_index[k] = num_reads + static_cast<int64_t>(args.size());
      args.push_back(n.inputs[k]);
    }
    for (size_t k = 0; k < new_index.size(); ++k) {
      if (new_index[k] < 0) new_index[k] = new_index[same_as[k]];
    }
    std::vector<int64_t> operands = old_node.attr_or<std::vector<int64_t>>("operands", {});
    const auto old_count = static_cast<int64_t>(new_index.size());
    const int64_t count = num_reads + static_cast<int64_t>(args.size());
    for (int64_t& operand : operands) {
      if (operand >= 0)
        operand = operand < old_count ? new_index[operand] : operand - old_count + count;
    }
    NodeBuilder builder(internal_graph(), "_FusedUpdate");
    builder.Name(old_node.name())
        .InputList(Outputs(num_variables - num_refs, MakePlaceholder(DT_RESOURCE)))
        .InputList(num_refs == 0 ? Outputs() : Outputs(num_refs, MakeVariablePlaceholder(type)))
        .InputList(Outputs(args.size(), MakePlaceholder(type)))
        .Attr("T", type)
        .Attr("reads", reads)
        .Attr("shape", n.shapes[0])
        .Attr("fused_ops", old_node.attr_or<std::vector<std::string>>("fused_ops", {}))
        .Attr("operands", operands)
        .Attr("params", old_node.attr_or<std::vector<float>>("params", {}))
        .Attr("others_of", old_node.attr_or<std::vector<int64_t>>("others_of", {}));
    const Node* const node = builder.Build();
    if (!internal_graph().TakeStatus().ok() || node == nullptr) return;
    inputs.insert(inputs.end(), args.begin(), args.end());
    if (!Replace(id, *node, inputs)) return;
    n.shapes.clear();
    n.controls.assign(controls.begin(), controls.end());
    for (const int control : controls) uses().Add(control, {PlanUse::Kind::kControl, id});
    for (const Update& u : updates) {
      n.cost_ns += plan_.nodes[u.assign].cost_ns;
      plan_.Fuse(u.assign);
      for (const int read : u.reads) plan_.Fuse(read);
      absl::c_replace(plan_.targets, u.assign, id);
      for (const PlanUse& use : PlanUses::List(uses().Of(u.assign))) {
        if (use.user >= 0) absl::c_replace(plan_.nodes[use.user].controls, u.assign, id);
        uses().Add(id, use);  // another update may have a control edge from it
      }
    }
    changed_ = true;
  }

  bool changed_ = false;
  bool has_ambiguous_handles_ = false;       // it is not certain which variables nodes use
  std::optional<VariableValues> variables_;  // from the first candidate on
  absl::flat_hash_map<int, std::vector<VariableAccess>> accesses_;  // by variable
  // Of the graph before any fusion. It stays right: a fused node waits for nothing that each of its
  // Assigns did not wait for.
  std::optional<ExternalWaits> external_waits_;
};

}  // namespace

absl::Status FuseUpdates(PlanGraph& plan, const PlanEnvironment& env) {
  return UpdateFusion(plan, env).Run();
}

}  // namespace weir
