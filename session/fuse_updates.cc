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
    for (size_t id = 0; id < plan_.nodes.size(); ++id) {
      if (plan_.nodes[id].Is("_FusedElementwise") && IsFusable(plan_.nodes[id]))
        Take(static_cast<int>(id));
    }
    return taken_ ? SortTopologically(plan_) : absl::OkStatus();
  }

 private:
  // A result, and the variable that it is assigned to.
  struct Update {
    int assign = -1;              // the node
    PlanValue handle;             // or reference
    Few arguments = {};           // that are the variable's value
    int shared = -1;              // one of them that others take too, or -1
    std::vector<int> reads = {};  // the nodes that the others come from

    // The node reads the variable itself.
    bool is_read() const { return !arguments.empty() && shared < 0; }
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
      if (n.removed || n.is_constant(0)) continue;
      for (int k = 0; k < static_cast<int>(n.inputs.size()); ++k)
        takers_[n.inputs[k].node].push_back({i, k, n.inputs[k].output});
      for (const int control : n.controls) takers_[control].push_back({i, -1, 0});
    }
    const auto leave = [&](int node) { leaves_.insert(node); };
    for (const PlanValue& v : plan_.fetches) leave(v.node);
    for (const PlanGraph::Carry& c : plan_.carries) leave(c.next.node);
    variables_ = FindVariables(plan_);
    for (const VariableAccess& access : FindAccesses(plan_, variables_))
      accesses_[access.variable].push_back(access);
  }

  void Take(int id) {
    if (takers_.empty()) FindTakers();
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
        absl::c_all_of(updates, [](const Update& u) { return u.arguments.empty(); })) {
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
    if ((!is_ref && !a.Is("AssignVariableOp")) || a.def != env_.kernels.Find(*a.node, kCpu) ||
        !a.runs_with(n) || a.may_be_dead || leaves_.contains(assign) || a.device != n.device ||
        (is_ref && !a.node->attr_or<bool>("validate_shape", true)) ||
        absl::c_any_of(takers_[assign], [](const Taker& t) { return t.input >= 0; })) {
      return std::nullopt;
    }
    Update update{.assign = assign, .handle = a.inputs[0]};
    const int variable = variables_.handle_of[a.inputs[0].node];
    if (variable < 0) return std::nullopt;
    for (const VariableAccess& access : accesses_.at(variable)) {
      if (access.kind != VariableAccess::Kind::kRead && access.node != assign) return std::nullopt;
    }
    FindReads(variable, from, &update);
    return update;
  }

  // The arguments that are the variable's value: the same for all, since the Assign comes after
  // all.
  void FindReads(int variable, int by, Update* update) const {
    const PlanNode& n = plan_.nodes[by];
    for (int k = 0; k < static_cast<int>(n.inputs.size()); ++k) {
      const int value = n.inputs[k].node;
      if (variables_.value_of[value] != variable || ShapeOf(n.inputs[k]) != n.shapes[0]) continue;
      update->arguments.push_back(k);
      const std::vector<int> reads = ReadsFor(value);
      if (reads.empty()) update->shared = k;
      update->reads.insert(update->reads.end(), reads.begin(), reads.end());
    }
  }

  // The nodes that the value comes from, if they serve nobody else: the last is the read.
  std::vector<int> ReadsFor(int value) const {
    std::vector<int> reads;
    while (takers_[value].size() == 1 && !leaves_.contains(value) &&
           !absl::c_linear_search(plan_.targets, value)) {
      const PlanNode& read = plan_.nodes[value];
      reads.push_back(value);
      if (read.kind == PlanNode::Kind::kRead || read.Is("ReadVariableOp")) return reads;
      if (!read.Is("Identity")) break;
      value = read.inputs[0].node;
    }
    return {};
  }

  // What the Assigns and the reads wait for. Nothing if one of these comes after an Assign, or
  // might.
  std::optional<std::set<int>> WaitsOf(const std::vector<Update>& updates) const {
    std::set<int> waits, seen;
    std::vector<int> stack;
    const auto add = [&](int id) {
      waits.insert(plan_.nodes[id].controls.begin(), plan_.nodes[id].controls.end());
    };
    for (const Update& u : updates) {
      add(u.assign);
      absl::c_for_each(u.reads, add);
      stack.push_back(u.assign);
    }
    while (!waits.empty() && !stack.empty()) {
      const int id = stack.back();
      stack.pop_back();
      if (waits.contains(id) || seen.size() > kMostFollowed) return std::nullopt;
      for (const Taker& taker : takers_[id]) {
        if (seen.insert(taker.node).second) stack.push_back(taker.node);
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
      for (const int k : u.arguments) u.is_read() ? place[k] = num_reads : same_as[k] = u.shared;
      num_reads += u.is_read() ? 1 : 0;
    }
    const auto num_variables = static_cast<int64_t>(updates.size());
    if (num_refs != 0 && num_refs != num_variables) return;  // references would follow on handles
    for (int k = 0; k < static_cast<int>(place.size()); ++k) {
      if (place[k] >= 0 || (same_as[k] >= 0 && same_as[k] != k)) continue;
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
        .InputList(Outputs(num_variables - num_refs, Stand(DT_RESOURCE)))
        .InputList(num_refs == 0 ? Outputs() : Outputs(num_refs, StandForVariable(type)))
        .InputList(Outputs(args.size(), Stand(type)))
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
    for (const Update& u : updates) {
      n.cost_ns += plan_.nodes[u.assign].cost_ns;
      plan_.nodes[u.assign].removed = true;
      for (const int read : u.reads) plan_.nodes[read].removed = true;
      for (const Taker& taker : takers_[u.assign])
        absl::c_replace(plan_.nodes[taker.node].controls, u.assign, id);
      absl::c_replace(plan_.targets, u.assign, id);
      // Another update may wait for it.
      takers_[id].insert(takers_[id].end(), takers_[u.assign].begin(), takers_[u.assign].end());
    }
    taken_ = true;
  }

  bool taken_ = false;
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
