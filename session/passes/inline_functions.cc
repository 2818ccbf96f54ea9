#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "weir/core/graph/scope.h"
#include "weir/core/runtime/function.h"
#include "weir/session/passes/effects.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/compile.h"
#include "weir/session/plan/fusion.h"
#include "weir/session/runtime/functions.h"

// Inlines calls of functions, and loops whose condition and body are functions; TensorFlow 2 writes
// all of its models with these. The nodes of a called function replace the call, and a While
// becomes a structured loop (structure_loops.cc). A call costs the beginning and the end of a step,
// and an iteration two of these, and no optimization crosses it. After inlining, the shapes of
// arguments are known inside, values share one arena, a loop over scalars becomes one node, and a
// profile shows where the time goes.
//
// The passes that prepare the plan of a call (PreparePlan) turn a function into a plan, and the
// functions that it calls are inlined into that, from the inside out. The inputs of the call
// replace the feeds of the function's plan, and users of the call use its results. A loop has an
// Enter for each loop variable, the nodes of the condition, a LoopCond, and the nodes of the body.
// The arguments of both functions are the loop variables, and the results of the body are their
// next values. A variable that the body returns unchanged needs no Enter: its initial value is used
// everywhere. Effects are targets, so they run even if the results are not used. They and reads of
// variables have control inputs from all predecessors of the call, including its arguments, whether
// the function uses these or not. A result that does not come after all effects becomes an Identity
// that does, because a call returns no result before it is complete.
//
// Nodes are named as a call's errors name them, "caller/node". Calls that are not inlined:
//
//   * a call that may be dead, in a branch of v1 control flow, or whose function contains such
//     branches or loops that are not structured;
//   * a function with state that the names of its nodes identify, which would be a separate state
//     in each place;
//   * a loop in which no variable changes, which only has effects;
//   * all calls in a session with accelerators, since the device of a resource argument is only
//     known when the function is called;
//   * a recursive function, and functions that are nested more deeply or are larger than the limits
//     below;
//   * branches (If, Case), and malformed calls, whose error the call itself reports.
namespace weir {

namespace {

constexpr size_t kMaxDepth = 16;     // of nested calls and loops
constexpr size_t kMaxNodes = 50000;  // of functions in one plan

// A function as a plan whose feeds are the arguments.
struct FunctionPlan {
  struct Result {
    int arg = -1;     // the argument that is the result, or -1
    PlanValue value;  // the value in `plan`, if it is no argument
  };
  PlanGraph plan;
  std::vector<Result> results;
};

// How many nodes may still be inlined into a plan, and the functions that are being inlined.
struct InlineBudget {
  size_t nodes = kMaxNodes;
  std::vector<std::string> callers;  // their keys
};

bool IsLoop(const PlanNode& n) {
  const FunctionCalls* const calls = n.traits().calls;
  return calls != nullptr && calls->is_loop && !calls->takes_index && calls->functions.size() == 2;
}
// True for a call of one function that always takes place.
bool IsCall(const PlanNode& n) {
  if (n.kind == PlanNode::Kind::kOp && n.node->op().is_function()) return true;
  const FunctionCalls* const calls = n.traits().calls;
  return calls != nullptr && !calls->is_loop && calls->first_argument == 0 &&
         calls->functions.size() == 1 && absl::string_view(calls->functions[0]) == "f";
}

// True if the node's name identifies its state, for lack of a shared_name.
bool HasStateByName(const Node& node) {
  const auto has_no = [&](absl::string_view name) {
    return node.op().FindAttr(name) != nullptr && node.attr_or<std::string>(name, "").empty();
  };
  return node.op().stateful() && (has_no("shared_name") || has_no("var_name"));
}

absl::Status InlineFunctions(PlanGraph& plan, const PlanEnvironment& env, InlineBudget* budget);

// Returns the argument that a value is, directly or through Identities; -1 if it is none.
int ArgOf(const PlanGraph& plan, PlanValue v) {
  while (plan.nodes[v.node].is_identity() && plan.nodes[v.node].controls.empty())
    v = plan.nodes[v.node].inputs[0];
  const auto feed = absl::c_find(plan.feeds, v);
  return feed == plan.feeds.end() ? -1 : static_cast<int>(feed - plan.feeds.begin());
}

// Returns an error if the function is malformed, and nullopt if it cannot be inlined or does not
// exist.
absl::StatusOr<std::optional<FunctionPlan>> MakeFunctionPlan(const Node& caller,
                                                             const FunctionRef& ref,
                                                             const PlanEnvironment& env,
                                                             InlineBudget* budget) {
  std::string key = FunctionKey(ref);
  if (budget->callers.size() == kMaxDepth || absl::c_linear_search(budget->callers, key))
    return std::nullopt;
  absl::StatusOr<FunctionBody> function_body = env.functions->MakeBody(ref, caller.name());
  if (absl::IsNotFound(function_body.status()))
    return std::nullopt;  // the call's kernel reports the error
  WEIR_RETURN_IF_ERROR(function_body.status());
  FunctionBody& function = *function_body;
  const auto& nodes = function.graph->nodes();
  if (nodes.size() >= budget->nodes) return std::nullopt;
  budget->nodes -= nodes.size() + 1;
  const auto has_state_by_name = [](const auto& node) { return HasStateByName(*node); };
  const auto same_type = [](const Output& arg, const Output& given) {
    return arg.dtype() == BaseType(given.dtype());
  };
  if (absl::c_any_of(nodes, has_state_by_name) ||
      !absl::c_equal(function.args, caller.inputs(), same_type)) {
    return std::nullopt;
  }
  std::vector<int> passed;
  const PlanRequest request = MakePlanRequest(function, &passed);
  Placement placement(*function.graph, env.kernels, env.devices, env.options);
  const PlanEnvironment inner{*function.graph,    env.graph_mutex, env.kernels,
                              env.devices,        env.resources,   env.pool,
                              env.options,        placement,       env.functions,
                              /*is_subplan=*/true};
  FunctionPlan callee_plan;
  WEIR_ASSIGN_OR_RETURN(callee_plan.plan, PreparePlan(request, inner));
  if (env.enabled("structure_loops")) StructureLoops(callee_plan.plan);
  budget->callers.push_back(std::move(key));
  const absl::Status status = InlineFunctions(callee_plan.plan, inner, budget);
  budget->callers.pop_back();
  WEIR_RETURN_IF_ERROR(status);
  size_t next = 0;
  for (const int arg : passed) {
    FunctionPlan::Result& result = callee_plan.results.emplace_back();
    result.arg = arg;
    if (arg >= 0) continue;
    result.value = callee_plan.plan.fetches[next++];
    result.arg = ArgOf(callee_plan.plan, result.value);
  }
  callee_plan.plan.graphs.push_back(std::move(function.graph));
  const bool is_regular =
      absl::c_all_of(callee_plan.plan.loops, [](const PlanLoop& l) { return l.is_structured(); }) &&
      absl::c_none_of(callee_plan.plan.nodes, [](const PlanNode& n) { return n.may_be_dead; });
  return is_regular ? std::optional(std::move(callee_plan)) : std::nullopt;
}

class FunctionInliner : public Fusion {
 public:
  FunctionInliner(PlanGraph& plan, const PlanEnvironment& env, InlineBudget* budget)
      : Fusion(plan, env), budget_(budget) {}

  void Run() {
    std::vector<PlanNode> nodes = std::exchange(plan_.nodes, {});
    const size_t num_loops = plan_.loops.size(), num_targets = plan_.targets.size(),
                 num_carries = plan_.carries.size();
    int kept = 0;
    for (PlanNode& n : nodes) {
      for (PlanValue& v : n.inputs) v = Mapped(v);
      for (int& control : n.controls) control = completion_[control];
      if (Inline(n)) continue;
      completion_.push_back(plan_.Insert(std::move(n)));
      ++kept;
    }
    plan_.changes = {.removed = static_cast<int>(nodes.size()) - kept,
                     .added = static_cast<int>(plan_.nodes.size()) - kept};
    for (PlanValue& v : plan_.feeds) v = Mapped(v);
    for (PlanValue& v : plan_.fetches) v = Mapped(v);
    for (size_t i = 0; i < num_targets; ++i) plan_.targets[i] = completion_[plan_.targets[i]];
    for (size_t i = 0; i < num_carries; ++i) {
      PlanGraph::Carry& c = plan_.carries[i];
      c = {completion_[c.carry], Mapped(c.next)};
    }
    for (size_t l = 0; l < num_loops; ++l) {
      PlanLoop& loop = plan_.loops[l];
      if (loop.is_structured()) loop.condition = completion_[loop.condition];
    }
  }

 private:
  // Returns the value in the new plan that replaces a value of the old one.
  PlanValue Mapped(const PlanValue& v) const {
    if (v.node < 0) return v;
    const auto result = results_.find({v.node, v.output});
    return result == results_.end() ? PlanValue{completion_[v.node], v.output} : result->second;
  }

  // Returns false if the node is not inlined.
  bool Inline(const PlanNode& n) {
    if (n.may_be_dead || (n.loop >= 0 && !plan_.loops[n.loop].is_structured())) return false;
    if (IsLoop(n)) return env_.enabled("structure_loops") && InlineLoop(n);
    return IsCall(n) && InlineCall(n);
  }

  DataType TypeOf(const PlanValue& v) const { return plan_.nodes[v.node].type(v.output); }
  // Returns the type of a result of a function.
  static DataType TypeOf(const FunctionPlan& callee_plan, size_t k, const PlanNode& caller) {
    const FunctionPlan::Result& result = callee_plan.results[k];
    return result.arg >= 0 ? BaseType(caller.node->input_type(result.arg))
                           : callee_plan.plan.nodes[result.value.node].type(result.value.output);
  }

  void SetResult(size_t k, const PlanValue& value) {
    results_[{static_cast<int>(completion_.size()), static_cast<int>(k)}] = value;
  }

  // Returns the control inputs and the arguments of a call.
  static decltype(PlanNode::controls) AllPredecessors(const PlanNode& n) {
    auto before = n.controls;
    for (const PlanValue& v : n.inputs) before.push_back(v.node);
    return before;
  }

  // ---- calls

  bool InlineCall(const PlanNode& n) {
    absl::StatusOr<std::optional<FunctionPlan>> callee =
        MakeFunctionPlan(*n.node, CalleeOf(*n.node), env_, budget_);
    if (!callee.ok() || !*callee) return false;
    FunctionPlan& callee_plan = **callee;
    const size_t num_results = callee_plan.results.size();
    if (num_results != static_cast<size_t>(n.num_outputs())) return false;
    for (size_t k = 0; k < num_results; ++k) {
      if (TypeOf(callee_plan, k, n) != n.type(static_cast<int>(k))) return false;
    }
    const std::vector<PlanValue> args(n.inputs.begin(), n.inputs.end());
    const Node* const group = NodeBuilder(internal_graph(), "NoOp").Name(n.node->name()).Build();
    PlanNode end = Make(n, *group, n.loop);
    end.in_body = n.in_body;
    const auto before = AllPredecessors(n);
    end.controls = before;
    const int first = static_cast<int>(plan_.nodes.size());
    const std::vector<int> new_ids =
        Splice(callee_plan, args, {.loop = n.loop, .in_body = n.in_body, .controls = before});
    for (const int target : callee_plan.plan.targets) {
      if (new_ids[target] >= 0) end.controls.push_back(new_ids[target]);
    }
    const std::set<int> effects = EffectsOf(new_ids, n.loop);
    for (size_t k = 0; k < num_results; ++k) {
      const PlanValue value =
          AfterEffects(effects, n, k, ResultOf(callee_plan, k, new_ids, args), first);
      end.controls.push_back(value.node);
      SetResult(k, value);
    }
    completion_.push_back(plan_.Insert(std::move(end)));
    return true;
  }

  // ---- loops

  bool InlineLoop(const PlanNode& n) {
    const auto make = [&](absl::string_view attr) {
      return MakeFunctionPlan(*n.node, n.node->attr<FunctionRef>(attr), env_, budget_);
    };
    absl::StatusOr<std::optional<FunctionPlan>> condition = make(n.traits().calls->functions[0]),
                                                body = make(n.traits().calls->functions[1]);
    if (!condition.ok() || !*condition || !body.ok() || !*body) return false;
    return BuildStructuredLoop(n, **condition, **body);
  }

  bool BuildStructuredLoop(const PlanNode& n, FunctionPlan& condition, FunctionPlan& body) {
    const size_t num_variables = n.inputs.size();
    if (condition.results.size() != 1 || body.results.size() != num_variables) return false;
    // A structured loop would take the values in a fixed order.
    const auto waits = [](const PlanNode& n) { return n.traits().waits == WaitsFor::kValue; };
    if (absl::c_count_if(condition.plan.nodes, waits) + absl::c_count_if(body.plan.nodes, waits) >
        1) {
      return false;
    }
    IndexList changed;
    for (size_t k = 0; k < num_variables; ++k) {
      if (TypeOf(body, k, n) != BaseType(n.node->input_type(static_cast<int>(k)))) return false;
      if (body.results[k].arg != static_cast<int>(k)) changed.push_back(static_cast<int>(k));
    }
    if (changed.empty()) return false;

    const int loop = static_cast<int>(plan_.loops.size());
    plan_.loops.push_back({.parent = n.loop, .frame_name = n.node->name(), .in_body = n.in_body});
    std::vector<PlanValue> variables(n.inputs.begin(), n.inputs.end());
    for (const int k : changed)
      variables[k] = {AddEnter(n, k, loop, /*takes_all_controls=*/k == changed[0]), 0};
    std::vector<int> new_ids = Splice(condition, variables, {.loop = loop, .in_body = false});
    const int end = AddCondition(n, ResultOf(condition, 0, new_ids, variables), loop);
    std::set<int> effects = EffectsOf(new_ids, n.loop);
    new_ids = Splice(body, variables, {.loop = loop, .in_body = true});
    effects.merge(EffectsOf(new_ids, n.loop));
    for (const int k : changed)
      plan_.carries.push_back({variables[k].node, ResultOf(body, k, new_ids, variables)});
    for (size_t k = 0; k < num_variables; ++k) {
      const bool is_changed =
          body.results[k].arg !=
          static_cast<int>(k);  // the value of the loop comes after all effects anyway
      SetResult(k, is_changed ? variables[k] : AfterEffects(effects, n, k, variables[k], end));
    }
    completion_.push_back(end);
    return true;
  }

  // Adds an Enter. The loop depends on its Enters, and these have the control inputs of the While;
  // one of them also depends on all of its inputs.
  int AddEnter(const PlanNode& n, int k, int loop, bool takes_all_controls) {
    const Node* const enter = NodeBuilder(internal_graph(), "Enter")
                                  .Name(absl::StrCat(n.node->name(), "/Enter_", k))
                                  .Input(MakePlaceholder(BaseType(n.node->input_type(k))))
                                  .Attr("frame_name", n.node->name())
                                  .Build();
    PlanNode entering = Make(n, *enter, n.loop, {n.inputs[k]});
    entering.value_loop = loop;
    entering.in_body = n.in_body;
    entering.controls = takes_all_controls ? AllPredecessors(n) : n.controls;
    return plan_.Insert(std::move(entering));
  }

  // A call applies ToBool to the condition; Simplify removes it for a bool scalar.
  int AddCondition(const PlanNode& n, const PlanValue& value, int loop) {
    Node* const to_bool = NodeBuilder(internal_graph(), "ToBool")
                              .Name(absl::StrCat(n.node->name(), "/ToBool"))
                              .Input(MakePlaceholder(TypeOf(value)))
                              .Build();
    const Node* const condition = NodeBuilder(internal_graph(), "LoopCond")
                                      .Name(absl::StrCat(n.node->name(), "/LoopCond"))
                                      .Input(to_bool->output(0))
                                      .Build();
    const PlanValue is_true = {plan_.Insert(Make(n, *to_bool, loop, {value})), 0};
    return plan_.loops[loop].condition = plan_.Insert(Make(n, *condition, loop, {is_true}));
  }

  // ---- function plans

  struct Location {
    int loop = -1;
    bool in_body = false;
    absl::Span<const int> controls = {};  // control inputs of nodes with effects and of reads
  };

  // Adds the nodes of a function's plan except its feeds. Returns, by node of that plan, the index
  // of the new node.
  std::vector<int> Splice(FunctionPlan& callee_plan, const std::vector<PlanValue>& args,
                          const Location& location) {
    PlanGraph& inner = callee_plan.plan;
    const int first_loop = static_cast<int>(plan_.loops.size());
    std::vector<int> new_ids(inner.nodes.size(), -1);
    absl::flat_hash_map<int, int> arg_of;  // by node
    for (size_t k = 0; k < inner.feeds.size(); ++k)
      arg_of[inner.feeds[k].node] = static_cast<int>(k);
    const auto mapped = [&](const PlanValue& v) {
      const auto arg = arg_of.find(v.node);
      return arg == arg_of.end() ? PlanValue{new_ids[v.node], v.output} : args[arg->second];
    };
    const auto loop_of = [&](int loop) { return loop < 0 ? location.loop : first_loop + loop; };
    for (size_t i = 0; i < inner.nodes.size(); ++i) {
      PlanNode& n = inner.nodes[i];
      if (n.kind == PlanNode::Kind::kFeed) continue;
      for (PlanValue& v : n.inputs) v = mapped(v);
      for (int& control : n.controls) control = new_ids[control];
      // Control edges from arguments are dropped.
      n.controls.erase(std::remove(n.controls.begin(), n.controls.end(), -1), n.controls.end());
      if (n.loop < 0) {
        n.in_body = location.in_body;
        if (n.value_loop >= 0 || !OnlyComputes(n))
          n.controls.insert(n.controls.end(), location.controls.begin(), location.controls.end());
      }
      n.loop = loop_of(n.loop);
      n.value_loop = loop_of(n.value_loop);
      new_ids[i] = plan_.Insert(std::move(n));
    }
    for (PlanLoop& loop : inner.loops) {
      if (loop.parent < 0) loop.in_body = location.in_body;
      loop.parent = loop_of(loop.parent);
      loop.condition = new_ids[loop.condition];
      plan_.loops.push_back(std::move(loop));
    }
    for (const PlanGraph::Carry& c : inner.carries)
      plan_.carries.push_back({new_ids[c.carry], mapped(c.next)});
    for (const int target : inner.targets) {
      if (new_ids[target] >= 0) plan_.targets.push_back(new_ids[target]);
    }
    plan_.graphs.insert(plan_.graphs.end(), inner.graphs.begin(), inner.graphs.end());
    if (inner.internal_graph != nullptr) plan_.graphs.push_back(inner.internal_graph);
    return new_ids;
  }

  // Returns the nodes with effects and reads of a function that was inlined into `loop`; for those
  // in inner loops, the LoopCond that completes the outermost of these.
  std::set<int> EffectsOf(const std::vector<int>& new_ids, int loop) const {
    std::set<int> effects;
    for (const int new_id : new_ids) {
      if (new_id < 0) continue;
      const PlanNode& n = plan_.nodes[new_id];
      if (!HasEffect(n) && !n.Is(VariableUse::kReads)) continue;
      int completion = new_id;
      for (int l = n.loop; l >= 0 && l != loop; l = plan_.loops[l].parent)
        completion = plan_.loops[l].condition;
      effects.insert(completion);
    }
    return effects;
  }

  // Returns a result of a call that comes after all of the call's effects: the value itself, if it
  // does, or else an Identity. The call's nodes have indices from `first` on.
  PlanValue AfterEffects(std::set<int> effects, const PlanNode& call, size_t k,
                         const PlanValue& value, int first) {
    if (effects.empty() || TypeOf(value) == DT_RESOURCE) return value;
    std::vector<int> stack = {value.node};
    std::set<int> visited(stack.begin(), stack.end());
    while (!stack.empty() && !effects.empty()) {
      const int i = stack.back();
      stack.pop_back();
      effects.erase(i);
      if (i < first) continue;
      const PlanNode& n = plan_.nodes[i];
      if (plan_.IsLoopVariable(n)) effects.erase(plan_.loops[n.value_loop].condition);
      const auto visit = [&](int before) {
        if (before >= 0 && visited.insert(before).second) stack.push_back(before);
      };
      for (const PlanValue& v : n.inputs) visit(v.node);
      for (const int control : n.controls) visit(control);
    }
    if (effects.empty()) return value;
    const Node* const identity = NodeBuilder(internal_graph(), "Identity")
                                     .Name(absl::StrCat(call.node->name(), "/result_", k))
                                     .Input(MakePlaceholder(TypeOf(value)))
                                     .Build();
    PlanNode result = Make(call, *identity, call.loop, {value});
    result.in_body = call.in_body;
    result.controls.assign(effects.begin(), effects.end());
    return {plan_.Insert(std::move(result)), 0};
  }

  static PlanValue ResultOf(const FunctionPlan& callee_plan, size_t k,
                            const std::vector<int>& new_ids, const std::vector<PlanValue>& args) {
    const FunctionPlan::Result& result = callee_plan.results[k];
    return result.arg >= 0 ? args[result.arg]
                           : PlanValue{new_ids[result.value.node], result.value.output};
  }

  InlineBudget* const budget_;
  std::vector<int>
      completion_;  // by old node: the node that replaces it, or that completes when it would have
  absl::flat_hash_map<std::pair<int, int>, PlanValue>
      results_;  // of inlined calls, by old node and output
};

absl::Status InlineFunctions(PlanGraph& plan, const PlanEnvironment& env, InlineBudget* budget) {
  if (absl::c_none_of(plan.nodes, [](const PlanNode& n) { return IsLoop(n) || IsCall(n); }))
    return absl::OkStatus();
  WEIR_RETURN_IF_ERROR(SortTopologically(plan));
  FunctionInliner(plan, env, budget).Run();
  return absl::OkStatus();
}

}  // namespace

absl::Status InlineFunctions(PlanGraph& plan, const PlanEnvironment& env) {
  const auto is_host = [](const std::unique_ptr<Device>& device) { return device->is_host(); };
  if (env.functions == nullptr || !absl::c_all_of(env.devices, is_host)) return absl::OkStatus();
  InlineBudget budget;
  return InlineFunctions(plan, env, &budget);
}

}  // namespace weir
