#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "weir/kernels/math/scalar_program.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/fusion.h"

// Fuses a structured loop (structure_loops.cc) all of whose values are scalars into one node,
// _ScalarLoop, which runs all of its iterations: a root search, a power by squaring, a schedule.
// Otherwise the kernel calls and the executor's marks dominate the cost of an iteration.
//
// The inputs of the variables' Enters are the node's first arguments, and the node replaces one of
// these Enters. All other values from outside of the loop that its nodes use are further arguments.
// The ops that the condition needs are computed first, then the condition is tested, then the body
// is computed, as in the structured loop. Users of the last value of a variable use a result of the
// node.
//
// A loop qualifies if only its variables are used outside, no node in it has control inputs, and
// each of its nodes is an op on scalars that cannot fail. Nested loops are visited from the inside
// out: a fused inner loop is then an ordinary node, though not one that could be part of a
// _ScalarLoop.
namespace weir {

namespace {

class ScalarLoopFusion : public Fusion {
 public:
  using Fusion::Fusion;

  absl::Status Run() {
    FindMembers();
    bool changed = false;
    for (int l = static_cast<int>(plan_.loops.size()) - 1; l >= 0; --l) {
      if (plan_.loops[l].is_structured()) changed |= Fuse(l);
    }
    if (!changed) return absl::OkStatus();
    DropRemoved(plan_);
    if (SortTopologically(plan_).ok()) return absl::OkStatus();
    return CycleThroughLoop(
        *absl::c_find_if(plan_.nodes, [](const PlanNode& n) { return n.Is("_ScalarLoop"); }));
  }

 private:
  struct Parts {
    IndexList variables;  // Enters
    IndexList ops;        // the ops that the condition needs come first
    int num_condition_ops = 0;
    IndexList controls;  // the control inputs of the Enters
  };

  void FindMembers() {
    members_.resize(plan_.loops.size());
    for (int i = 0; i < static_cast<int>(plan_.nodes.size()); ++i) {
      const PlanNode& n = plan_.nodes[i];
      if (n.loop >= 0) members_[n.loop].push_back(i);
      if (n.value_loop >= 0 && n.value_loop != n.loop) members_[n.value_loop].push_back(i);
    }
  }

  bool IsInLoop(int node, int loop) const {
    return plan_.nodes[node].loop == loop || plan_.nodes[node].value_loop == loop;
  }

  bool IsScalar(const PlanNode& n) const {
    return n.shapes.size() == 1 && n.shapes[0].has_rank() && n.shapes[0].rank() == 0 &&
           IsScalarType(n.type(0));
  }

  bool IsFusableOp(const PlanNode& n) const {
    return IsFusable(n) && n.controls.empty() && !n.may_be_dead && IsScalar(n) &&
           FindScalarOp(*n.node).has_value() &&
           absl::c_all_of(n.inputs, [&](const PlanValue& v) { return ShapeOf(v) == Shape(); });
  }

  // Collects the nodes of the loop. Returns false if some node cannot be part of a _ScalarLoop.
  bool Collect(int l, Parts* parts) const {
    IndexList body;
    for (const int i : members_[l]) {
      const PlanNode& n = plan_.nodes[i];
      if (n.removed || n.is_constant(0) || !IsInLoop(i, l)) continue;
      if (n.value_loop == l && n.is_enter()) {
        if (!plan_.IsLoopVariable(n) || !n.device->is_host() || !IsScalar(n)) return false;
        parts->variables.push_back(i);
        parts->controls.insert(parts->controls.end(), n.controls.begin(), n.controls.end());
      } else if (plan_.loops[l].condition == i) {
        if (!n.controls.empty() || n.may_be_dead) return false;
      } else if (IsFusableOp(n)) {
        (n.in_body ? body : parts->ops).push_back(i);
      } else {
        return false;
      }
    }
    parts->num_condition_ops = static_cast<int>(parts->ops.size());
    parts->ops.insert(parts->ops.end(), body.begin(), body.end());
    return !parts->variables.empty();
  }

  // True if nodes outside of the loop use no values of it but its variables, and wait for nothing
  // but its end.
  bool OnlyVariablesEscape(int l) const {
    const auto may_escape = [&](const PlanValue& v) {
      return v.node < 0 || !IsInLoop(v.node, l) || plan_.nodes[v.node].is_constant(v.output) ||
             plan_.IsLoopVariable(plan_.nodes[v.node]);
    };
    return absl::c_all_of(plan_.fetches, may_escape) &&
           absl::c_all_of(plan_.nodes, [&](const PlanNode& n) {
             return n.loop == l || absl::c_all_of(n.inputs, may_escape);
           });
  }

  bool Fuse(int l) {
    Parts parts;
    if (!Collect(l, &parts) || !OnlyVariablesEscape(l)) return false;
    std::vector<PlanValue>
        values;  // variables, invariants, results of ops, in the order that the node uses
    std::vector<PlanValue> next(parts.variables.size());
    for (const int variable : parts.variables) values.push_back({variable, 0});
    const auto add_invariant = [&](const PlanValue& v) {
      const bool is_outside = !IsInLoop(v.node, l) || plan_.nodes[v.node].is_constant(v.output);
      if (is_outside && !absl::c_linear_search(values, v)) values.push_back(v);
    };
    for (const int op : parts.ops) absl::c_for_each(plan_.nodes[op].inputs, add_invariant);
    const PlanValue condition = plan_.nodes[plan_.loops[l].condition].inputs[0];
    add_invariant(condition);
    for (const PlanGraph::Carry& c : plan_.carries) {
      const auto variable = absl::c_find(parts.variables, c.carry);
      if (variable == parts.variables.end()) continue;
      next[variable - parts.variables.begin()] = c.next;
      add_invariant(c.next);
    }
    if (absl::c_any_of(values, [&](const PlanValue& v) {
          return !IsScalarType(plan_.nodes[v.node].type(v.output)) || ShapeOf(v) != Shape();
        }))
      return false;
    const size_t num_arguments = values.size();
    for (const int op : parts.ops) values.push_back({op, 0});
    if (values.size() > kMaxScalars) return false;
    const Node* const node = MakeNode(l, parts, values, num_arguments, condition, next);
    if (node == nullptr) return false;
    values.resize(num_arguments);
    return Replace(l, parts, *node, std::move(values));
  }

  const Node* MakeNode(int l, const Parts& parts, const std::vector<PlanValue>& values,
                       size_t num_arguments, const PlanValue& condition,
                       const std::vector<PlanValue>& next) {
    const auto index_of = [&](const PlanValue& v) {
      return static_cast<int64_t>(absl::c_find(values, v) - values.begin());
    };
    Outputs entering, invariants;
    std::vector<DataType> variable_types, invariant_types, types;
    for (size_t k = 0; k < num_arguments; ++k) {
      const DataType type = plan_.nodes[values[k].node].type(values[k].output);
      const bool is_variable = k < parts.variables.size();
      (is_variable ? variable_types : invariant_types).push_back(type);
      (is_variable ? entering : invariants).push_back(MakePlaceholder(type));
    }
    std::vector<std::string> ops;
    std::vector<int64_t> operands, next_values;
    std::vector<float> params;
    for (const int op : parts.ops) {
      const PlanNode& n = plan_.nodes[op];
      const char* const param = FindScalarOp(*n.node)->param;
      ops.push_back(n.node->op_name());
      types.push_back(n.node->output_type(0));
      params.push_back(param == nullptr ? 0 : n.node->attr_or<float>(param, 0));
      for (size_t k = 0; k < 2; ++k)
        operands.push_back(k < n.inputs.size() ? index_of(n.inputs[k]) : -1);
    }
    for (const PlanValue& v : next) next_values.push_back(index_of(v));
    const Node* const node = NodeBuilder(internal_graph(), "_ScalarLoop")
                                 .Name(plan_.nodes[plan_.loops[l].condition].node->name())
                                 .InputList(entering)
                                 .InputList(invariants)
                                 .Attr("variable_types", variable_types)
                                 .Attr("invariant_types", invariant_types)
                                 .Attr("fused_ops", ops)
                                 .Attr("operands", operands)
                                 .Attr("params", params)
                                 .Attr("types", types)
                                 .Attr("num_condition_ops", int64_t{parts.num_condition_ops})
                                 .Attr("condition", index_of(condition))
                                 .Attr("next", next_values)
                                 .Build();
    return internal_graph().TakeStatus().ok() ? node : nullptr;
  }

  // Replaces the loop by the node.
  bool Replace(int l, const Parts& parts, const Node& node, std::vector<PlanValue> arguments) {
    constexpr double kAssumedIterations = 100;  // the number is not known
    const int place = parts.variables[0], num_variables = static_cast<int>(parts.variables.size());
    PlanNode& n = plan_.nodes[place];
    PlanLoop& loop = plan_.loops[l];
    double cost_ns = 0;
    for (const int op : parts.ops) cost_ns += plan_.nodes[op].cost_ns;
    for (int k = 0; k < num_variables; ++k)
      arguments[k] = plan_.nodes[parts.variables[k]].inputs[0];
    if (!Fusion::Replace(place, node, arguments)) return false;
    n.shapes.assign(num_variables, Shape());
    n.value_loop = n.loop;
    n.in_body = loop.in_body;
    n.may_be_dead = false;
    n.controls.assign(parts.controls.begin(), parts.controls.end());
    n.cost_ns = cost_ns * kAssumedIterations;
    absl::flat_hash_map<int, int> results;  // by Enter
    for (int k = 0; k < num_variables; ++k) results[parts.variables[k]] = k;
    const auto take = [&](PlanValue& v) {
      if (const auto it = results.find(v.node); it != results.end()) v = {place, it->second};
    };
    std::erase_if(plan_.carries,
                  [&](const PlanGraph::Carry& c) { return results.contains(c.carry); });
    const auto wait = [&](int& control) {
      if (control >= 0 && control != place && IsInLoop(control, l)) control = place;
    };
    for (int i = 0; i < static_cast<int>(plan_.nodes.size()); ++i) {
      PlanNode& other = plan_.nodes[i];
      if (i == place) continue;
      if (IsInLoop(i, l) && other.is_constant(0)) {
        other.loop = other.value_loop = n.loop;
      } else if (IsInLoop(i, l)) {
        plan_.Fuse(i);
      }
      absl::c_for_each(other.inputs, take);
      absl::c_for_each(other.controls, wait);
    }
    absl::c_for_each(plan_.fetches, take);
    for (PlanGraph::Carry& c : plan_.carries) take(c.next);
    absl::c_for_each(plan_.targets, wait);
    loop.condition = -1;
    return true;
  }

  std::vector<std::vector<int>>
      members_;  // by loop, including its Enters, before anything is fused
};

}  // namespace

absl::Status FuseScalarLoops(PlanGraph& plan, const PlanEnvironment& env) {
  return plan.loops.empty() ? absl::OkStatus() : ScalarLoopFusion(plan, env).Run();
}

}  // namespace weir
