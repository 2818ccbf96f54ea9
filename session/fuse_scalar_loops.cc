#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "weir/kernels/scalar_program.h"
#include "weir/session/fusion.h"

// A raised loop (structure_loops.cc) all of whose values are scalars becomes one node, _ScalarLoop,
// which runs all of its iterations: a search for a root, a power by squaring, a schedule. What an
// iteration of such a loop costs otherwise is calls of kernels and the executor's marks.
//
// The variables' Enters give the node its first arguments, and the node takes the place of one of
// them. Whatever else the loop's nodes take from outside are the other arguments. What comes before
// the condition is computed first, then the condition is tested, then the body computed, as in the
// raised loop. Who took the last value of a variable takes a result of the node.
//
// A loop qualifies if nothing of it but its variables is used outside, nothing in it waits for
// anything, and each of its nodes is an op on scalars that refuses no value. Loops in loops are
// looked at from the inside out: an inner one is a node like any other then, though none that could
// be a part of a _ScalarLoop.
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
    IndexList ops;        // those that the condition needs first
    int num_condition_ops = 0;
    IndexList waits_for;  // what the Enters wait for
  };

  void FindMembers() {
    members_.resize(plan_.loops.size());
    for (int i = 0; i < static_cast<int>(plan_.nodes.size()); ++i) {
      const PlanNode& n = plan_.nodes[i];
      if (n.loop >= 0) members_[n.loop].push_back(i);
      if (n.value_loop >= 0 && n.value_loop != n.loop) members_[n.value_loop].push_back(i);
    }
  }

  bool IsIn(int node, int loop) const {
    return plan_.nodes[node].loop == loop || plan_.nodes[node].value_loop == loop;
  }

  bool IsScalar(const PlanNode& n) const {
    return n.shapes.size() == 1 && n.shapes[0].has_rank() && n.shapes[0].rank() == 0 &&
           IsScalarType(n.type(0));
  }

  bool IsOp(const PlanNode& n) const {
    return IsFusable(n) && n.controls.empty() && !n.may_be_dead && IsScalar(n) &&
           FindScalarOp(*n.node).has_value() &&
           absl::c_all_of(n.inputs, [&](const PlanValue& v) { return ShapeOf(v) == Shape(); });
  }

  // False if something of the loop is no part of such a node.
  bool Collect(int l, Parts* parts) const {
    IndexList body;
    for (const int i : members_[l]) {
      const PlanNode& n = plan_.nodes[i];
      if (n.removed || n.is_constant(0) || !IsIn(i, l)) continue;
      if (n.value_loop == l && n.is_enter()) {
        if (!plan_.IsLoopVariable(n) || !n.device->is_host() || !IsScalar(n)) return false;
        parts->variables.push_back(i);
        parts->waits_for.insert(parts->waits_for.end(), n.controls.begin(), n.controls.end());
      } else if (plan_.loops[l].condition == i) {
        if (!n.controls.empty() || n.may_be_dead) return false;
      } else if (IsOp(n)) {
        (n.in_body ? body : parts->ops).push_back(i);
      } else {
        return false;
      }
    }
    parts->num_condition_ops = static_cast<int>(parts->ops.size());
    parts->ops.insert(parts->ops.end(), body.begin(), body.end());
    return !parts->variables.empty();
  }

  // Whether nobody outside takes anything but variables, or waits for what is not an end of the
  // loop.
  bool OnlyVariablesLeave(int l) const {
    const auto may_leave = [&](const PlanValue& v) {
      return v.node < 0 || !IsIn(v.node, l) || plan_.nodes[v.node].is_constant(v.output) ||
             plan_.IsLoopVariable(plan_.nodes[v.node]);
    };
    return absl::c_all_of(plan_.fetches, may_leave) &&
           absl::c_all_of(plan_.nodes, [&](const PlanNode& n) {
             return n.loop == l || absl::c_all_of(n.inputs, may_leave);
           });
  }

  bool Fuse(int l) {
    Parts parts;
    if (!Collect(l, &parts) || !OnlyVariablesLeave(l)) return false;
    std::vector<PlanValue> values;  // variables, invariants, results of ops, as the node has them
    std::vector<PlanValue> next(parts.variables.size());
    for (const int variable : parts.variables) values.push_back({variable, 0});
    const auto add_invariant = [&](const PlanValue& v) {
      const bool is_outside = !IsIn(v.node, l) || plan_.nodes[v.node].is_constant(v.output);
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
    if (values.size() > kMostScalars) return false;
    const Node* const node = Make(l, parts, values, num_arguments, condition, next);
    if (node == nullptr) return false;
    values.resize(num_arguments);
    return Replace(l, parts, *node, std::move(values));
  }

  const Node* Make(int l, const Parts& parts, const std::vector<PlanValue>& values,
                   size_t num_arguments, const PlanValue& condition,
                   const std::vector<PlanValue>& next) {
    const auto position = [&](const PlanValue& v) {
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
        operands.push_back(k < n.inputs.size() ? position(n.inputs[k]) : -1);
    }
    for (const PlanValue& v : next) next_values.push_back(position(v));
    const Node* const node = NodeBuilder(made(), "_ScalarLoop")
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
                                 .Attr("condition", position(condition))
                                 .Attr("next", next_values)
                                 .Build();
    return made().TakeStatus().ok() ? node : nullptr;
  }

  // Of the loop nothing is left but the node.
  bool Replace(int l, const Parts& parts, const Node& node, std::vector<PlanValue> arguments) {
    constexpr double kIterations = 100;  // nobody knows
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
    n.controls.assign(parts.waits_for.begin(), parts.waits_for.end());
    n.cost_ns = cost_ns * kIterations;
    absl::flat_hash_map<int, int> results;  // by Enter
    for (int k = 0; k < num_variables; ++k) results[parts.variables[k]] = k;
    const auto take = [&](PlanValue& v) {
      if (const auto it = results.find(v.node); it != results.end()) v = {place, it->second};
    };
    std::erase_if(plan_.carries,
                  [&](const PlanGraph::Carry& c) { return results.contains(c.carry); });
    const auto wait = [&](int& control) {
      if (control >= 0 && control != place && IsIn(control, l)) control = place;
    };
    for (int i = 0; i < static_cast<int>(plan_.nodes.size()); ++i) {
      PlanNode& other = plan_.nodes[i];
      if (i == place) continue;
      if (IsIn(i, l) && other.is_constant(0)) {
        other.loop = other.value_loop = n.loop;
      } else if (IsIn(i, l)) {
        other.Remove();
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

  std::vector<std::vector<int>> members_;  // by loop, with its Enters, before anything is fused
};

}  // namespace

absl::Status FuseScalarLoops(PlanGraph& plan, const PlanEnvironment& env) {
  return plan.loops.empty() ? absl::OkStatus() : ScalarLoopFusion(plan, env).Run();
}

}  // namespace weir
