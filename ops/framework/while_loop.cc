#include "weir/ops/framework/while_loop.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/flow_context.h"
#include "weir/ops/framework/variable_store.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/literal.h"
#include "weir/ops/lib/math.h"

namespace weir {

namespace {

// Builds a loop of the nodes that TensorFlow's while_loop builds, in the same order, for each
// variable:
//
//     x -> Enter -> Merge -+-> (condition) -> LoopCond
//                     ^    |                     |
//                     |    +------> Switch <-----+
//                     |              |   '-> Exit -> the last value
//                     |          Identity
//                     |              |
//                NextIteration <- (body)
//
// The edge from NextIteration to Merge is added last; until then both inputs of Merge are the
// Enter.
class LoopBuilder {
 public:
  LoopBuilder(Graph& graph, const WhileOptions& options, Output maximum_iterations = {})
      : g_(graph),
        options_(options),
        stack_(FlowStack::Of(graph)),
        maximum_iterations_(maximum_iterations) {}

  Outputs Build(const LoopCondFn& cond, const LoopBodyFn& body, const Outputs& loop_vars) {
    context_ = stack_.Make(FlowContext::Kind::kLoop);
    context_->frame_name = g_.UniqueName(g_.name_scope() + "while_context");
    context_->parallel_iterations = options_.parallel_iterations;
    context_->maximum_iterations = maximum_iterations_;
    const InContext inside(stack_, context_);
    const bool built = EnterAll(loop_vars) && BuildCondition(cond) && BuildBody(body);
    if (!built || !g_.status().ok()) return {};
    stack_.AddToCollection(*context_);
    return context_->exits;
  }

 private:
  std::string ScopeName() const { return g_.name_scope().substr(0, g_.name_scope().size() - 1); }

  bool EnterAll(const Outputs& loop_vars) {
    Outputs outer;
    for (const Output& v : loop_vars) {
      if (!v.valid()) return false;
      outer.push_back(stack_.ImportValue(context_->outer, v, ScopeName()));
      if (!outer.back().valid()) return false;
    }
    for (size_t i = 0; i < outer.size(); ++i) {
      const Output enter = EnterVariable(i, outer[i]);
      if (!enter.valid()) return false;
      // The Enter's input comes from outside and must not be captured again.
      stack_.Assign(enter.node, context_);
      context_->enters.push_back(enter);
    }
    for (const Output& enter : context_->enters) {
      const Output merge = Merge({enter, enter}).output;
      if (!merge.valid()) return false;
      merges_.push_back(merge);
    }
    context_->pivot = context_->pivot_for_pred = merges_[0].node;
    return true;
  }

  Output EnterVariable(size_t i, const Output& value) {
    Output enter =
        Enter(value, context_->frame_name,
              {.is_constant = false, .parallel_iterations = options_.parallel_iterations});
    if (!enter.valid()) return {};
    const Shape& initial = value.shape();
    const Shape& invariant = options_.shape_invariants ? (*options_.shape_invariants)[i] : initial;
    if (!IsAtLeastAsSpecific(initial, invariant)) {
      g_.Fail(InvalidArgument("The shape invariant specified for ", value.name(),
                              " is not compatible with the initial shape of the loop variable. It "
                              "enters the loop with ",
                              "shape ", initial.ToString(),
                              ", but the specified shape invariant is ", invariant.ToString(),
                              "."));
      return {};
    }
    g_.Fail(g_.RefineShape(enter, invariant));
    const FlowContext* outer = context_->outer;
    while (outer != nullptr && outer->pivot == nullptr) outer = outer->outer;
    Node* const pivot = outer == nullptr ? nullptr : outer->pivot;
    if (pivot != nullptr && IsLoopConstant(value)) g_.Fail(g_.AddControlInput(enter.node, pivot));
    return enter;
  }

  // Returns whether `shape` is at least as specific as `general`.
  static bool IsAtLeastAsSpecific(const Shape& shape, const Shape& general) {
    if (!general.has_rank()) return true;
    if (!shape.has_rank() || shape.rank() != general.rank()) return false;
    for (int d = 0; d < shape.rank(); ++d) {
      if (general.dim(d) >= 0 && general.dim(d) != shape.dim(d)) return false;
    }
    return true;
  }

  bool BuildCondition(const LoopCondFn& cond) {
    const Output condition = cond(merges_);
    if (!condition.valid()) return false;
    const Output loop_cond = LoopCond(condition, "LoopCond");
    if (!loop_cond.valid()) return false;
    context_->condition = loop_cond;
    for (const Output& merge : merges_) {
      const PlaceWith beside(g_, merge.node, true);
      const SwitchResult sides = Switch(merge, loop_cond);
      if (!sides.on_true.valid()) return false;
      switches_.push_back(sides);
    }
    return true;
  }

  bool BuildBody(const LoopBodyFn& body) {
    Outputs vars;
    for (const SwitchResult& sides : switches_) {
      vars.push_back(Identity(sides.on_true));
      if (!vars.back().valid()) return false;
    }
    stack_.RewireNewNodes();
    context_->pivot = vars[0].node;
    const Outputs next = body(vars);
    if (!g_.status().ok()) return false;
    if (next.size() != merges_.size()) {
      g_.Fail(InvalidArgument("Number of inputs and outputs of 'body' must match 'loop_vars'. Got ",
                              next.size(), " for the number of inputs/outputs, and ",
                              merges_.size(), " for 'loop_vars'."));
      return false;
    }
    for (size_t i = 0; i < next.size(); ++i) {
      if (!next[i].valid() || !AddBackEdge(i, NextIteration(next[i]))) return false;
    }
    for (const SwitchResult& sides : switches_) {
      context_->exits.push_back(Exit(sides.on_false));
      if (!context_->exits.back().valid()) return false;
    }
    return true;
  }

  bool AddBackEdge(size_t i, const Output& next) {
    if (!next.valid()) return false;
    if (!IsAtLeastAsSpecific(next.shape(), merges_[i].shape())) {
      const Output& input = context_->enters[i].node->input(0);
      g_.Fail(InvalidArgument(
          "Input tensor '", input.name(), "' enters the loop with shape ", input.shape().ToString(),
          ", but has shape ", next.shape().ToString(),
          " after one iteration. To allow the shape to vary across iterations, use the ",
          "`shape_invariants` option of WhileLoop to specify a less-specific shape."));
      return false;
    }
    return g_.Fail(g_.SetInput(merges_[i].node, 1, next)).ok();
  }

  Graph& g_;
  const WhileOptions& options_;
  FlowStack& stack_;
  const Output maximum_iterations_;
  FlowContext* context_ = nullptr;
  Outputs merges_;
  std::vector<SwitchResult> switches_;
};

// Builds the loop with a counter as an additional first variable.
Outputs CountedLoop(Graph& g, const LoopCondFn& cond, const LoopBodyFn& body,
                    const Outputs& loop_vars, const WhileOptions& options) {
  const auto rest = [](const Outputs& vars) { return Outputs(vars.begin() + 1, vars.end()); };
  const Output limit = options.maximum_iterations->In(g, "maximum_iterations", DT_INT32);
  Outputs vars = {Const(g, Tensor::Scalar<int32_t>(0), "iteration_counter")};
  vars.insert(vars.end(), loop_vars.begin(), loop_vars.end());
  WhileOptions counted = options;
  if (counted.shape_invariants)
    counted.shape_invariants->insert(counted.shape_invariants->begin(), Shape());
  const Outputs all = LoopBuilder(g, counted, limit)
                          .Build(
                              [&](const Outputs& v) {
                                const Output below = Less(v[0], limit);
                                return LogicalAnd(below, cond(rest(v)));
                              },
                              [&](const Outputs& v) {
                                Outputs next = {v[0] + 1};
                                for (const Output& o : body(rest(v))) next.push_back(o);
                                return next;
                              },
                              vars);
  return all.empty() ? all : rest(all);
}

// Builds the loop; returns an empty vector on failure.
Outputs Loop(const LoopCondFn& cond, const LoopBodyFn& body, const Outputs& loop_vars,
             const WhileOptions& options) {
  const auto valid =
      std::find_if(loop_vars.begin(), loop_vars.end(), [](const Output& v) { return v.valid(); });
  if (valid == loop_vars.end()) return {};
  Graph& g = valid->graph();
  const auto fail = [&g](const absl::Status& status) {
    g.Fail(status);
    return Outputs();
  };
  if (options.parallel_iterations < 1) {
    return fail(InvalidArgument("'parallel_iterations' must be a positive integer: ",
                                options.parallel_iterations));
  }
  if (options.shape_invariants && options.shape_invariants->size() != loop_vars.size()) {
    return fail(InvalidArgument("WhileLoop '", options.name, "' has ", loop_vars.size(),
                                " variables, but ", options.shape_invariants->size(),
                                " shape invariants"));
  }
  const NameScope scope(g, options.name);
  return options.maximum_iterations ? CountedLoop(g, cond, body, loop_vars, options)
                                    : LoopBuilder(g, options).Build(cond, body, loop_vars);
}

}  // namespace

Outputs WhileLoop(const LoopCondFn& cond, const LoopBodyFn& body, const Outputs& loop_vars,
                  const WhileOptions& options) {
  Outputs results;
  const auto valid = absl::c_find_if(loop_vars, [](const Output& v) { return v.valid(); });
  if (cond != nullptr && body != nullptr) {
    results = Loop(cond, body, loop_vars, options);
  } else if (valid != loop_vars.end()) {
    valid->graph().Fail(
        InvalidArgument("'", options.name, "': ", cond == nullptr ? "cond" : "body", " is empty"));
  }
  results.resize(loop_vars.size());
  return results;
}

}  // namespace weir
