#include "weir/ops/framework/cond.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_join.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/flow_context.h"
#include "weir/ops/lib/array.h"

namespace weir {

namespace {

std::string TypesOf(const Outputs& outputs) {
  return absl::StrJoin(outputs, ", ", [](std::string* text, const Output& o) {
    absl::StrAppend(text, DataTypeName(o.dtype()));
  });
}

class CondBuilder {
 public:
  CondBuilder(Output pred, absl::string_view name)
      : g_(pred.graph()), stack_(FlowStack::Of(g_)), scope_(g_, name) {
    const SwitchResult sides = Switch(pred, pred);
    pivots_[1] = Identity(sides.on_true, "switch_t");
    pivots_[0] = Identity(sides.on_false, "switch_f");
    pred_ = Identity(pred, "pred_id");
  }

  using Fn = std::function<Outputs(Output pivot)>;
  Outputs Build(const Fn& if_true, const Fn& if_false) {
    if (!pred_.valid() || !pivots_[0].valid() || !pivots_[1].valid())
      return Outputs(if_true(pivots_[1]).size());
    const std::optional<Outputs> on_true = MakeBranch(1, if_true);
    if (!on_true) return Outputs(num_results_);
    const std::optional<Outputs> on_false = MakeBranch(0, if_false);
    if (!on_false) return Outputs(num_results_);
    if (on_true->size() != on_false->size() || TypesOf(*on_true) != TypesOf(*on_false)) {
      g_.Fail(InvalidArgument("Cond '", scope_.name(),
                              "': Outputs of 'true_fn' and 'false_fn' must have the same ",
                              "type(s). Received (", TypesOf(*on_true), ") from 'true_fn' and (",
                              TypesOf(*on_false), ") from 'false_fn'."));
      return Outputs(num_results_);
    }
    Outputs merged;
    for (size_t i = 0; i < on_true->size(); ++i) {
      merged.push_back(Merge({(*on_false)[i], (*on_true)[i]}).output);
      if (!merged.back().valid()) return Outputs(num_results_);
    }
    for (const int side : {1, 0}) stack_.AddToCollection(*branches_[side]);
    return merged;
  }

 private:
  // Returns nullopt on failure; the graph holds the error.
  std::optional<Outputs> MakeBranch(int side, const Fn& fn) {
    const Output& pivot = pivots_[side];
    FlowContext* const branch = stack_.Make(FlowContext::Kind::kBranch);
    branch->pivot = pivot.node;
    branch->pred = pred_;
    branch->side = side;
    branch->branch_name = g_.UniqueName(g_.name_scope() + "cond_text");
    branch->imported = {{pivot, pivot},
                        {pred_, pred_}};  // both are used unchanged inside the branch
    branches_[side] = branch;
    const InContext inside(stack_, branch);
    Outputs outputs = fn(pivot);
    num_results_ = std::max(num_results_, outputs.size());
    stack_.RewireNewNodes();
    const std::string user = scope_.name().substr(0, scope_.name().size() - 1);
    bool ok = g_.status().ok();
    for (Output& out : outputs) {
      if (out.valid()) out = stack_.ImportResult(branch, out, user);
      ok = ok && out.valid();
    }
    if (!ok) return std::nullopt;
    return outputs;
  }

  Graph& g_;
  FlowStack& stack_;
  const NameScope scope_;
  Output pred_, pivots_[2];
  FlowContext* branches_[2] = {};
  size_t num_results_ = 0;  // the number of results to return on failure
};

}  // namespace

Outputs Cond(Output pred, const BranchListFn& if_true, const BranchListFn& if_false,
             absl::string_view name) {
  if (if_true == nullptr || if_false == nullptr) {
    if (pred.valid()) pred.graph().Fail(InvalidArgument("Cond: a branch's function is empty"));
    return {};
  }
  if (!pred.valid()) return Outputs(if_true().size());
  return CondBuilder(pred, name.empty() ? "cond" : name)
      .Build([&if_true](Output) { return if_true(); }, [&if_false](Output) { return if_false(); });
}

Output Cond(Output pred, const BranchFn& if_true, const BranchFn& if_false,
            absl::string_view name) {
  BranchListFn true_list, false_list;
  if (if_true != nullptr) true_list = [&if_true] { return Outputs{if_true()}; };
  if (if_false != nullptr) false_list = [&if_false] { return Outputs{if_false()}; };
  const Outputs outputs = Cond(pred, true_list, false_list, name);
  return outputs.empty() ? Output() : outputs[0];
}

Operation CondRun(Output pred, const std::function<Operation()>& if_true,
                  const std::function<Operation()>& if_false, absl::string_view name) {
  if (!pred.valid()) return {};
  // The branch returns its pivot with a control dependency on the op.
  const auto run = [](const std::function<Operation()>& fn, const Output& pivot) {
    const Operation op = fn();
    return Outputs{op.valid() ? WithDependencies({op}, pivot) : Output()};
  };
  const Outputs outputs = CondBuilder(pred, name.empty() ? "cond" : name)
                              .Build([&](Output pivot) { return run(if_true, pivot); },
                                     [&](Output pivot) { return run(if_false, pivot); });
  return outputs.empty() ? Operation() : Operation(outputs[0]);
}

namespace {

// Adds the Assert op. Strings become its own constants.
Operation AssertOp(const Output& condition, const std::vector<TensorArg>& data) {
  Graph& g = condition.graph();
  const NameScope scope(g, "Assert");
  Outputs shown;
  for (size_t i = 0; i < data.size(); ++i) {
    shown.push_back(data[i].In(g, DT_INVALID, absl::StrCat("data_", i)));
    if (!shown.back().valid()) return {};
  }
  return Assert(condition, shown, 3, scope.name());
}

}  // namespace

Operation AssertThat(Output condition, const std::vector<TensorArg>& data, absl::string_view name) {
  if (!condition.valid()) return {};
  Graph& g = condition.graph();
  const NameScope scope(g, name);
  bool on_host = true;
  for (const TensorArg& d : data) {
    const DataType type = d.In(g).dtype();
    if (type == DT_INVALID) return {};
    on_host = on_host && (type == DT_STRING || type == DT_INT32);
  }
  if (on_host) return AssertOp(condition, data);
  return CondRun(
      condition, [&] { return NoOp(g); }, [&] { return AssertOp(condition, data); }, "AssertGuard");
}

}  // namespace weir
