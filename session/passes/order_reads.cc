#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/plan_uses.h"
#include "weir/session/plan/variable_use.h"

// Direct users of a reference variable see every write that the graph orders before them.
//
// TensorFlow 1 graphs share one read of a reference variable, `w/read`, among all users. In
// TensorFlow it is an alias of the variable: a user that runs after a write sees the new value,
// even if other users (such as the gradients of that write) have used the same read before. In Weir
// a read is a snapshot. So if a user runs after a write and the shared read may run before it, the
// user takes the reference itself instead of the shared read, and InsertReads gives it a read of
// its own. Such a user waits for nothing that it did not wait for before: the pass adds no order to
// the graph.
//
// A Switch, or an Enter of a loop constant, only routes the value of a read into a branch or a
// loop. Its users are direct users too: a RefSwitch or RefEnter routes the reference to them. A
// node that computes from the value, including Identity and Reshape, keeps the value that it
// received.
//
// "After" covers paths of data and control edges, and paths from one iteration of a loop to the
// next, unless the read is run again in each iteration. A read that a control edge orders before a
// write is meant to keep the old value, and does, unless it is the variable's own shared read.
namespace weir {

namespace {

class ReadOrder {
 public:
  ReadOrder(PlanGraph& plan, const PlanEnvironment& env) : plan_(plan), env_(env) {}

  absl::Status Run() {
    if (absl::c_none_of(plan_.nodes, [this](const PlanNode& n) { return IsRead(n); }))
      return absl::OkStatus();
    FindRoutes();
    FindWriters();
    if (writers_.empty()) return absl::OkStatus();
    uses_ = PlanUses(plan_);
    FindLateUses();
    if (late_uses_.empty()) return absl::OkStatus();
    AnalyzeDeadness(plan_);
    OrderFetches();
    for (const auto& [user, input] : late_uses_) WEIR_RETURN_IF_ERROR(UseReference(user, input));
    RemoveUnused();
    return SortTopologically(plan_);
  }

 private:
  bool IsReference(const PlanValue& value) const {
    const PlanNode& n = plan_.nodes[value.node];
    return n.kind == PlanNode::Kind::kOp && IsRef(n.type(value.output));
  }
  bool IsRead(const PlanNode& n) const { return n.Is("Identity") && IsReference(n.inputs[0]); }

  // Finds reads, and the nodes that route their values, and the variable of each.
  void FindRoutes() {
    variables_ = FindVariables(plan_);
    variable_of_.assign(plan_.nodes.size(), -1);
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& n = plan_.nodes[i];
      if (n.kind != PlanNode::Kind::kOp || n.inputs.empty()) continue;
      const int from = n.inputs[0].node;
      if (IsRead(n)) {
        variable_of_[i] = variables_.handle_of[from];
      } else if (n.Is("Switch") || (n.is_enter() && n.node->attr<bool>("is_constant"))) {
        variable_of_[i] = variable_of_[from];
      }
    }
  }

  void FindWriters() {
    const absl::flat_hash_set<int> read(variable_of_.begin(), variable_of_.end());
    for (const VariableAccess& access : FindAccesses(plan_, variables_)) {
      if (access.kind != VariableAccess::Kind::kRead && read.contains(access.variable))
        writers_[access.variable].push_back(access.node);
    }
  }

  using Nodes = absl::flat_hash_set<int>;

  // Returns the nodes that run after `start` in the same iteration of `loop`.
  const Nodes& NodesAfter(int start, int loop) {
    const auto [it, is_new] = after_.try_emplace({start, loop});
    if (!is_new) return it->second;
    Nodes& seen = it->second;
    std::vector<int> stack = {start};
    const auto reach = [&](int id) {
      if (seen.insert(id).second) stack.push_back(id);
    };
    while (!stack.empty()) {
      const int id = stack.back();
      stack.pop_back();
      const int around = plan_.nodes[id].loop;
      const bool repeats = around != loop && plan_.IsInside(around, loop);
      for (const PlanUse& use : uses_.Of(id)) {
        if (use.is_edge() || (repeats && use.kind == PlanUse::Kind::kCarry)) reach(use.user);
      }
    }
    return seen;
  }

  // Returns true for a node that a control edge orders after the read, unless the read is the
  // variable's own.
  bool MustKeepValue(int read, int writer) {
    const PlanNode& n = plan_.nodes[read];
    if (!IsRead(n)) return false;
    if (n.node->name() == absl::StrCat(plan_.nodes[n.inputs[0].node].node->name(), "/read"))
      return false;
    return absl::c_any_of(uses_.Of(read), [&](const PlanUse& use) {
      return use.kind == PlanUse::Kind::kControl &&
             (use.user == writer || NodesAfter(use.user, n.loop).contains(writer));
    });
  }

  // A Merge forwards one input, whatever happened to the others: it is after the write only if a
  // control edge orders it so. A read that is dead by a control edge must stay dead.
  bool IsUnaffectedMerge(int user, int route, int writer, const Nodes& after) const {
    const PlanNode& n = plan_.nodes[user];
    if (n.def == nullptr || !n.def->accepts_dead) return false;
    const auto waits = [&](int control) { return control == writer || after.contains(control); };
    const bool is_tied = IsRead(plan_.nodes[route]) && !plan_.nodes[route].controls.empty();
    return is_tied || absl::c_none_of(n.controls, waits);
  }

  // `user` uses a value of `route`, read at `sample` before some write, and runs after that write.
  bool IsLate(int user, int route, int sample) {
    bool late = false;
    const int loop = plan_.nodes[sample].loop;
    for (const int writer : writers_[variable_of_[route]]) {
      const Nodes& after = NodesAfter(writer, loop);
      if (!after.contains(user) || after.contains(sample)) continue;
      if (IsUnaffectedMerge(user, route, writer, after) || MustKeepValue(sample, writer)) continue;
      missed_writes_[route].push_back(writer);
      late = true;
    }
    return late;
  }

  // In topological order: a late route reads the variable again, other routes forward the value
  // that was read before.
  void FindLateUses() {
    std::vector<int> sample(plan_.nodes.size(), -1);
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& n = plan_.nodes[i];
      const int user = static_cast<int>(i);
      if (variable_of_[i] >= 0) sample[i] = IsRead(n) ? user : sample[n.inputs[0].node];
      for (size_t k = 0; k < n.inputs.size(); ++k) {
        const int route = n.inputs[k].node, variable = variable_of_[route];
        if (variable < 0 || !writers_.contains(variable)) continue;
        if (!IsLate(user, route, sample[route])) continue;
        late_uses_.emplace_back(user, static_cast<int>(k));
        if (variable_of_[i] >= 0 && k == 0) sample[i] = user;
      }
    }
  }

  // A read that only a fetch uses, once late users have their own reads, is moved after the writes
  // that those users wait for, where possible.
  void OrderFetches() {
    for (const PlanValue& fetch : plan_.fetches) {
      const auto missed = missed_writes_.find(fetch.node);
      if (missed == missed_writes_.end() || !IsRead(plan_.nodes[fetch.node])) continue;
      const bool is_used = absl::c_any_of(uses_.Of(fetch.node), [&](const PlanUse& use) {
        const auto is_late = [&](const auto& late) {
          return late.first == use.user &&
                 plan_.nodes[use.user].inputs[late.second].node == fetch.node;
        };
        return use.is_edge() && absl::c_none_of(late_uses_, is_late);
      });
      if (is_used) continue;
      for (const int writer : missed->second) {
        PlanNode& read = plan_.nodes[fetch.node];
        const PlanNode& n = plan_.nodes[writer];
        if (n.may_be_dead || n.value_loop != read.value_loop) continue;
        if (!NodesAfter(fetch.node, -1).contains(writer)) read.controls.push_back(writer);
      }
    }
  }

  // Replaces the user's input, which comes from a read, by the reference that was read.
  absl::Status UseReference(int user, int input) {
    const PlanValue value = plan_.nodes[user].inputs[input];
    WEIR_ASSIGN_OR_RETURN(const PlanValue reference, ReferenceOf(value));
    if (IsRead(plan_.nodes[value.node])) CopyReadControls(value.node, user);
    plan_.nodes[user].inputs[input] = reference;
    return absl::OkStatus();
  }

  // The user of the value now waits for the control inputs of the read itself.
  void CopyReadControls(int read, int user) {
    auto& controls = plan_.nodes[user].controls;
    for (const int control : plan_.nodes[read].controls) {
      if (!absl::c_linear_search(controls, control)) controls.push_back(control);
    }
  }

  // Returns the reference behind the value of a read or a route, in the same frame and branch.
  absl::StatusOr<PlanValue> ReferenceOf(const PlanValue& value) {
    if (IsReference(value)) return value;  // a route that is itself late
    if (IsRead(plan_.nodes[value.node])) return plan_.nodes[value.node].inputs[0];
    const auto found = references_.find(value.node);
    if (found != references_.end()) return PlanValue{found->second, value.output};
    const PlanValue data = plan_.nodes[value.node].inputs[0];
    WEIR_ASSIGN_OR_RETURN(const PlanValue reference, ReferenceOf(data));
    PlanNode route = plan_.nodes[value.node];
    route.node = MakeReferenceRoute(*route.node);
    if (route.node == nullptr) return internal_graph_->TakeStatus();
    route.inputs[0] = reference;
    route.device = plan_.nodes[reference.node].device;
    route.def = env_.kernels.Find(*route.node, route.device->place());
    if (route.def == nullptr) return NotFound("no kernel for node ", route.node->Label());
    const int id = plan_.Insert(std::move(route));
    if (IsRead(plan_.nodes[data.node])) CopyReadControls(data.node, id);
    references_[value.node] = id;
    return PlanValue{id, value.output};
  }

  // Returns a node like this Switch or Enter, for a reference.
  const Node* MakeReferenceRoute(const Node& route) {
    if (internal_graph_ == nullptr) {
      internal_graph_ = std::make_shared<Graph>(env_.graph.ops());
      plan_.graphs.push_back(internal_graph_);
    }
    const Output variable = NodeBuilder(*internal_graph_, "VariableV2")
                                .Name("reference")
                                .Attr("dtype", BaseType(route.output_type(0)))
                                .Attr("shape", Shape::UnknownRank())
                                .BuildOutput();
    if (route.op_name() == "Switch") {
      const Output pred = NodeBuilder(*internal_graph_, "Placeholder")
                              .Name("pred")
                              .Attr("dtype", DT_BOOL)
                              .BuildOutput();
      return NodeBuilder(*internal_graph_, "RefSwitch")
          .Name(route.name())
          .Input(variable)
          .Input(pred)
          .Build();
    }
    return NodeBuilder(*internal_graph_, "RefEnter")
        .Name(route.name())
        .Input(variable)
        .Attr("frame_name", route.attr<std::string>("frame_name"))
        .Attr("is_constant", true)
        .Build();
  }

  // Removes reads and routes that have no users left.
  void RemoveUnused() {
    Nodes candidates;
    for (const auto& [route, writers] : missed_writes_) {
      // A route whose input is a reference by now begins at a node that was inserted.
      const auto is_route = [this](int at) {
        return at < static_cast<int>(variable_of_.size()) && variable_of_[at] >= 0;
      };
      for (int at = route; is_route(at) && candidates.insert(at).second;)
        at = plan_.nodes[at].inputs[0].node;
    }
    plan_.EraseUnused({candidates.begin(), candidates.end()});
    DropRemoved(plan_);
  }

  PlanGraph& plan_;
  const PlanEnvironment& env_;
  VariableValues variables_;
  std::vector<int> variable_of_;  // by node: the variable whose value it reads or routes; or -1
  absl::flat_hash_map<int, IndexList> writers_;  // by variable
  PlanUses uses_;
  std::map<std::pair<int, int>, Nodes> after_;         // by node and loop
  std::vector<std::pair<int, int>> late_uses_;         // late users, and their inputs
  absl::flat_hash_map<int, IndexList> missed_writes_;  // by route: writes before late users
  absl::flat_hash_map<int, int> references_;           // by route
  std::shared_ptr<Graph> internal_graph_;
};

}  // namespace

absl::Status OrderReads(PlanGraph& plan, const PlanEnvironment& env) {
  return ReadOrder(plan, env).Run();
}

}  // namespace weir
