#include "weir/ops/cond.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "weir/core/scope.h"
#include "weir/ops/array.h"
#include "weir/ops/control_flow.h"
#include "weir/ops/variable_store.h"

namespace weir {

struct Branch {
  Output pred;  // "cond/pred_id"
  Node* pivot;  // runs if the branch is taken
  int side;     // which output of a Switch it sees: 1 if the branch is for true
  int first;    // nodes from this id on are made in it, but for those in `outside`
  int settled;  // nodes below this id have their edges
  absl::flat_hash_set<const Node*> outside = {};
  absl::flat_hash_map<Output, Output> switched =
      {};  // values from outside, as the branch sees them

  bool Contains(const Node* node) const { return node->id() >= first && !outside.contains(node); }
};

namespace {

// The nodes of a branch are built as anywhere else, and get their edges across its border
// afterwards: a value from outside is replaced by the branch's side of a Switch on it, which is
// dead if the branch is not taken, and so is all that depends on it; a node without inputs waits
// for the branch's pivot. A value from outside goes through one Switch for each branch that it
// enters, outermost first, whichever node in there uses it first gives the Switch its name. So that
// names come out as TensorFlow's, which adds edges node by node, a branch is settled whenever
// another one is opened inside it.
class BranchStack {
 public:
  std::vector<Branch*> open;  // innermost last

  void SettleInnermost(Graph& g) {
    if (!open.empty()) Settle(g, static_cast<int>(open.size()) - 1);
  }

  void Settle(Graph& g, int level) {
    Branch& b = *open[level];
    for (; b.settled < g.num_nodes(); ++b.settled) {
      Node* node = g.nodes()[b.settled].get();
      if (b.outside.contains(node)) continue;
      if (node->num_inputs() == 0) {
        const auto controls = node->control_inputs();
        const bool waits = std::any_of(controls.begin(), controls.end(),
                                       [&b](const Node* c) { return b.Contains(c); });
        if (!waits) g.Fail(g.AddControlInput(node, b.pivot));
      }
      for (int i = 0; i < node->num_inputs(); ++i) {
        const Output seen = See(level, node->input(i), node->name());
        if (!seen) return;
        if (seen != node->input(i)) g.Fail(g.SetInput(node, i, seen));
      }
    }
  }

  // `value` as the branch of that level sees it. `user`: the node or scope that asks; a Switch on
  // a branch's result, unlike others, runs after the control dependencies around.
  Output See(int level, const Output& value, const std::string& user, bool is_result = false) {
    if (level < 0) return value;
    Branch& b = *open[level];
    if (b.Contains(value.node)) return value;
    const auto it = b.switched.find(value);
    if (it != b.switched.end()) return it->second;
    const Output outer = See(level - 1, value, user);
    if (!outer) return {};
    Graph& g = value.graph();
    const std::string name = g.UniqueName(user + "/Switch") + "/";
    Node* node = SwitchOn(outer, b.pred, name, is_result);
    if (node == nullptr) return {};
    for (size_t i = level; i < open.size(); ++i) open[i]->outside.insert(node);
    const Output seen = node->output(b.side);
    b.switched[seen] = seen;
    return b.switched[value] = seen;
  }

 private:
  static Node* SwitchOn(const Output& data, const Output& pred, const std::string& name,
                        bool with_controls) {
    std::optional<ClearControlDependencies> no_controls;
    if (!with_controls) no_controls.emplace(data.graph());
    const PlaceWith place(data.graph(), data.node, true);
    return AddNode(data.is_ref() ? "RefSwitch" : "Switch", {data, pred}, {}, name);
  }
};

std::string TypesOf(const Outputs& outputs) {
  return absl::StrJoin(outputs, ", ", [](std::string* text, const Output& o) {
    absl::StrAppend(text, DataTypeName(o.dtype()));
  });
}

class CondBuilder {
 public:
  CondBuilder(Output pred, absl::string_view name)
      : g_(pred.graph()), stack_(g_.Extension<BranchStack>()), scope_(g_, name) {
    const SwitchResult sides = Switch(pred, pred);
    pivots_[1] = Identity(sides.on_true, "switch_t");
    pivots_[0] = Identity(sides.on_false, "switch_f");
    pred_ = Identity(pred, "pred_id");
  }

  using Fn = std::function<Outputs(Output pivot)>;
  Outputs Build(const Fn& if_true, const Fn& if_false) {
    if (!pred_ || !pivots_[0] || !pivots_[1]) return {};
    const std::optional<Outputs> on_true = MakeBranch(1, if_true);
    if (!on_true) return {};
    const std::optional<Outputs> on_false = MakeBranch(0, if_false);
    if (!on_false) return {};
    if (on_true->size() != on_false->size() || TypesOf(*on_true) != TypesOf(*on_false)) {
      g_.Fail(InvalidArgument("Cond '", scope_.name(),
                              "': Outputs of 'true_fn' and 'false_fn' must have the same ",
                              "type(s). Received (", TypesOf(*on_true), ") from 'true_fn' and (",
                              TypesOf(*on_false), ") from 'false_fn'."));
      return {};
    }
    Outputs merged;
    for (size_t i = 0; i < on_true->size(); ++i) {
      merged.push_back(Merge({(*on_false)[i], (*on_true)[i]}).output);
      if (!merged.back()) return {};
    }
    return merged;
  }

 private:
  // Nothing if it failed; the graph has the reason.
  std::optional<Outputs> MakeBranch(int side, const Fn& fn) {
    stack_.SettleInnermost(g_);
    const Output& pivot = pivots_[side];
    Branch branch{pred_, pivot.node, side, g_.num_nodes(), g_.num_nodes()};
    branch.switched = {{pivot, pivot}, {pred_, pred_}};  // both belong to the branch as they are
    stack_.open.push_back(&branch);
    Outputs outputs = fn(pivot);
    const int level = static_cast<int>(stack_.open.size()) - 1;
    stack_.Settle(g_, level);
    const std::string user = scope_.name().substr(0, scope_.name().size() - 1);
    bool ok = g_.status().ok();
    for (Output& out : outputs) {
      if (out) out = stack_.See(level, out, user, /*is_result=*/true);
      ok = ok && out;
    }
    stack_.open.pop_back();
    if (!ok) return std::nullopt;
    return outputs;
  }

  Graph& g_;
  BranchStack& stack_;
  const NameScope scope_;
  Output pred_, pivots_[2];
};

}  // namespace

Outputs Cond(Output pred, const BranchListFn& if_true, const BranchListFn& if_false,
             absl::string_view name) {
  if (!pred) return {};
  return CondBuilder(pred, name.empty() ? "cond" : name)
      .Build([&if_true](Output) { return if_true(); }, [&if_false](Output) { return if_false(); });
}

Output Cond(Output pred, const BranchFn& if_true, const BranchFn& if_false,
            absl::string_view name) {
  const Outputs outputs = Cond(
      pred, [&if_true] { return Outputs{if_true()}; }, [&if_false] { return Outputs{if_false()}; },
      name);
  return outputs.empty() ? Output() : outputs[0];
}

Operation CondRun(Output pred, const std::function<Operation()>& if_true,
                  const std::function<Operation()>& if_false, absl::string_view name) {
  if (!pred) return {};
  // The pivot, once the op has run, stands for it.
  const auto run = [](const std::function<Operation()>& fn, const Output& pivot) {
    const Operation op = fn();
    return Outputs{op ? WithDependencies({op}, pivot) : Output()};
  };
  const Outputs outputs = CondBuilder(pred, name.empty() ? "cond" : name)
                              .Build([&](Output pivot) { return run(if_true, pivot); },
                                     [&](Output pivot) { return run(if_false, pivot); });
  return outputs.empty() ? Operation() : Operation(outputs[0]);
}

namespace {

// The op, which turns texts into its own constants.
Operation AssertOp(const Output& condition, const std::vector<TensorArg>& data) {
  Graph& g = condition.graph();
  const NameScope scope(g, "Assert");
  Outputs shown;
  for (size_t i = 0; i < data.size(); ++i) {
    shown.push_back(data[i].In(g, DT_INVALID, absl::StrCat("data_", i)));
    if (!shown.back()) return {};
  }
  return Assert(condition, shown, 3, scope.name());
}

}  // namespace

Operation AssertThat(Output condition, const std::vector<TensorArg>& data, absl::string_view name) {
  if (!condition) return {};
  Graph& g = condition.graph();
  const NameScope scope(g, name);
  std::vector<TensorArg> shown;
  bool on_host = true;
  for (const TensorArg& d : data) {
    shown.push_back(d.In(g));
    const DataType type = shown.back().output().dtype();
    if (type == DT_INVALID) return {};
    on_host = on_host && (type == DT_STRING || type == DT_INT32);
  }
  if (on_host) return AssertOp(condition, shown);
  return CondRun(
      condition, [&] { return NoOp(g); }, [&] { return AssertOp(condition, data); }, "AssertGuard");
}

OutsideBranches::OutsideBranches(Graph& graph) : graph_(graph), first_(graph.num_nodes()) {
  BranchStack& stack = graph.Extension<BranchStack>();
  stack.SettleInnermost(graph);
  open_ = std::move(stack.open);
  stack.open.clear();
}

OutsideBranches::~OutsideBranches() {
  for (Branch* branch : open_) {
    for (int id = first_; id < graph_.num_nodes(); ++id) {
      branch->outside.insert(graph_.nodes()[id].get());
    }
  }
  for (int id = first_; id < graph_.num_nodes() && !open_.empty(); ++id) CheckOutside(id);
  graph_.Extension<BranchStack>().open = std::move(open_);
}

void OutsideBranches::CheckOutside(int id) const {
  const Node* node = graph_.nodes()[id].get();
  for (const Output& in : node->inputs()) {
    if (!open_[0]->Contains(in.node)) continue;
    graph_.Fail(InvalidArgument(
        node->Label(), " lies outside of the branches under construction, as variables and their ",
        "initial values do, but takes ", in.name(), ", which is there only if a branch is taken"));
  }
}

bool IsInBranch(const Output& value) {
  if (!value) return false;
  for (const Branch* branch : value.graph().Extension<BranchStack>().open) {
    if (branch->Contains(value.node)) return true;
  }
  return false;
}

}  // namespace weir
