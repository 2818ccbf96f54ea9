#include "weir/ops/framework/function.h"

#include <functional>

#include "absl/strings/str_cat.h"

#include "weir/core/io/function_library.h"
#include "weir/ops/framework/function_internal.h"
#include "weir/ops/framework/gradient_util.h"
#include "weir/ops/framework/state.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"

// Functional loops: While and For. Their gradients have the structure of TensorFlow 2's
// while_v2.py:
//
//     forward:   x, lists                    = Loop(body(x), each list with x appended)
//     backward:  lists without last item, dx = Loop(gradient of body(x from the lists, dx))
//
// The forward loop is run again, next to the loop that is differentiated. It saves the values of
// its variables at the start of each iteration in tensor lists (TensorListPushBack). The backward
// loop has the same number of iterations. In each one it pops the last element of each list and
// propagates dx through the gradient of the body: SymbolicGradient, which recomputes the
// intermediate values of the body from x instead of saving all of them. A variable that the body
// returns unchanged (a captured tensor, the handle of a variable) needs no list. Its gradients add
// up over the iterations, since the body's gradient includes the gradient of that result.
//
// Both loops are nodes of the same op as the one that is differentiated, so second-order gradients
// are built in the same way: a list is a variable like any other.
//
// The new functions are added to the graph's library. A session also builds gradients of functions,
// each in a graph of its own, and merges their libraries. Therefore equal functions must have equal
// names and different functions different names: a name ends in a fingerprint of everything that
// the function depends on.
namespace weir {

// ---- gradients

namespace {

using Build = std::function<Outputs(Graph& graph, const Outputs& args)>;

// FNV-1a.
uint64_t Fingerprint(absl::string_view bytes) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  return hash;
}

// Skips Identity nodes without control inputs.
Output SkipIdentities(Output value) {
  while (value.node->op_name() == "Identity" && value.node->control_inputs().empty())
    value = value.node->input(0);
  return value;
}

Outputs OutputsOf(const Node* node) {
  Outputs outputs;
  for (int i = 0; node != nullptr && i < node->num_outputs(); ++i)
    outputs.push_back(node->output(i));
  return outputs;
}

void Append(const Outputs& more, Outputs* list) {
  list->insert(list->end(), more.begin(), more.end());
}

class LoopGradient {
 public:
  // The loop's variables are the node's inputs from `first` on. If `counts`, the body takes a
  // counter before them.
  LoopGradient(GradContext& g, int first, bool counts)
      : g_(g),
        graph_(g.graph()),
        first_(first),
        counts_(counts),
        body_(g.attr<FunctionRef>("body")) {}

  Grads WhileGradient();
  Grads ForGradient();

 private:
  struct Variable {
    Output x;
    DataType gradient = DT_INVALID;
    bool is_invariant = false;  // the body returns it unchanged
    bool is_differentiable = false;
  };

  absl::Status FindVariables();
  std::string NameOf(absl::string_view kind) const;
  FunctionRef Define(absl::string_view kind, const DataTypes& types, const Build& build);
  DataTypes ForwardTypes() const;
  DataTypes BackwardTypes() const;
  Outputs ForwardStart() const;
  Outputs BackwardStart(const Outputs& forward);
  Outputs Forward(Graph& graph, const Outputs& args) const;
  Outputs Backward(Graph& graph, const Outputs& args) const;
  Grads ExtractGrads(const Outputs& backward) const;

  size_t size() const { return variables_.size(); }

  GradContext& g_;
  Graph& graph_;
  const int first_;
  const bool counts_;
  const FunctionRef body_;
  std::vector<Variable> variables_;
};

absl::Status LoopGradient::FindVariables() {
  WEIR_ASSIGN_OR_RETURN(
      const FunctionBody body,
      InstantiateFunction(graph_.functions(), body_, graph_.ops(), graph_.versions()));
  const size_t count = g_.num_inputs() - first_, skipped = counts_ ? 1 : 0;
  if (body.args.size() != count + skipped || body.results.size() != count) {
    return InvalidArgument("Function '", body_.name, "' takes ", body.args.size(),
                           " arguments and returns ", body.results.size(),
                           " results, but the loop '", g_.node().name(), "' has ", count,
                           " variables");
  }
  for (size_t i = 0; i < count; ++i) {
    Variable v{g_.x(first_ + static_cast<int>(i))};
    v.gradient = GradientType(v.x);
    v.is_invariant = SkipIdentities(body.results[i]) == body.args[i + skipped];
    v.is_differentiable = IsTrainable(v.gradient) && v.gradient != DT_RESOURCE;
    if (v.is_differentiable && v.x.dtype() == DT_RESOURCE && !v.is_invariant) {
      return Unimplemented("Gradient of the loop '", g_.node().name(), "', in which variable ", i,
                           " is a handle that changes between iterations");
    }
    variables_.push_back(v);
  }
  return absl::OkStatus();
}

std::string LoopGradient::NameOf(absl::string_view kind) const {
  std::string key = FunctionKey(body_);
  if (const AttrValue* cond = g_.node().FindAttr("cond"))
    key += FunctionKey(*cond->get_if<FunctionRef>());
  for (const Variable& v : variables_) {
    absl::StrAppend(&key, ",", static_cast<int>(v.x.dtype()), ":", static_cast<int>(v.gradient),
                    v.is_invariant ? "k" : "", v.is_differentiable ? "d" : "");
  }
  return absl::StrCat(body_.name, "_", kind, "_", absl::Hex(Fingerprint(key)));
}

// Adds a function to the library.
FunctionRef LoopGradient::Define(absl::string_view kind, const DataTypes& types,
                                 const Build& build) {
  const std::string name = NameOf(kind);
  Graph body(graph_.ops());
  body.set_functions(graph_.functions());
  Outputs args;
  for (const DataType type : types) args.push_back(Placeholder(body, type));
  const Outputs results = build(body, args);
  graph_.Fail(body.status());
  if (graph_.status().ok()) graph_.Fail(DefineFunction(graph_, name, body, args, results));
  return FunctionRef{name, nullptr};
}

// A counter, the variables, and a list for each variable that changes.
DataTypes LoopGradient::ForwardTypes() const {
  DataTypes types = {DT_INT32};
  for (const Variable& v : variables_) types.push_back(v.x.dtype());
  for (const Variable& v : variables_) {
    if (!v.is_invariant) types.push_back(DT_VARIANT);
  }
  return types;
}

// A counter, each variable or its list, and the gradients.
DataTypes LoopGradient::BackwardTypes() const {
  DataTypes types = {DT_INT32};
  for (const Variable& v : variables_) types.push_back(v.is_invariant ? v.x.dtype() : DT_VARIANT);
  for (const Variable& v : variables_) {
    if (v.is_differentiable) types.push_back(v.gradient);
  }
  return types;
}

Outputs LoopGradient::ForwardStart() const {
  Outputs start;
  for (const Variable& v : variables_) start.push_back(v.x);
  for (const Variable& v : variables_) {
    if (v.is_invariant) continue;
    start.push_back(AddOp("EmptyTensorList", {Const(graph_, -1), Const(graph_, -1)},
                          {{"element_dtype", v.x.dtype()}}));
  }
  return start;
}

// `forward`: the variables and the lists at the end of the forward loop.
Outputs LoopGradient::BackwardStart(const Outputs& forward) {
  Outputs start;
  size_t list = size();
  for (const Variable& v : variables_) start.push_back(v.is_invariant ? v.x : forward[list++]);
  for (size_t i = 0; i < size(); ++i) {
    const Variable& v = variables_[i];
    if (!v.is_differentiable) continue;
    Output dy = g_.dy(static_cast<int>(i));
    if (!dy.valid() && v.x.dtype() == DT_RESOURCE)
      dy = Zeros(graph_, StaticVariableShape(v.x), v.gradient);
    start.push_back(dy.valid() ? dy : ZerosLike(g_.y(static_cast<int>(i))));
  }
  return start;
}

// Builds the body of the forward loop. The results do not include the counter.
Outputs LoopGradient::Forward(Graph& graph, const Outputs& args) const {
  const Outputs x(args.begin() + 1, args.begin() + 1 + static_cast<int64_t>(size()));
  Outputs body_args = x;
  if (counts_) body_args.insert(body_args.begin(), args[0]);
  Outputs next = Call(graph, body_, body_args);
  size_t list = 1 + size();
  for (size_t i = 0; i < size(); ++i) {
    if (!variables_[i].is_invariant)
      next.push_back(AddOp("TensorListPushBack", {args[list++], x[i]}));
  }
  return next;
}

// Builds the body of the backward loop. The results do not include the counter.
Outputs LoopGradient::Backward(Graph& graph, const Outputs& args) const {
  Outputs next, x, dys;
  if (counts_) x.push_back(args[0]);
  const size_t first_dy = 1 + size();
  size_t dy = first_dy;
  DataTypes gradients;
  if (counts_) gradients.push_back(DT_INT32);
  for (size_t i = 0; i < size(); ++i) {
    const Variable& v = variables_[i];
    next.push_back(args[1 + i]);
    x.push_back(args[1 + i]);
    if (!v.is_invariant) {
      const Outputs popped = OutputsOf(AddNode("TensorListPopBack", {args[1 + i], Const(graph, -1)},
                                               {{"element_dtype", v.x.dtype()}}));
      if (popped.empty()) return {};
      next.back() = popped[0];
      x.back() = popped[1];
    }
    dys.push_back(v.is_differentiable ? args[dy++] : x.back());
    gradients.push_back(v.gradient);
  }
  Append(dys, &x);
  DataTypes types;
  for (const Output& value : x) types.push_back(value.dtype());
  const Outputs grads = OutputsOf(AddNode(
      kSymbolicGradient, {x}, {{"Tin", types}, {"Tout", gradients}, {"f", AttrValue(body_)}}));
  for (size_t i = 0; i < size() && !grads.empty(); ++i) {
    if (variables_[i].is_differentiable) next.push_back(grads[i + (counts_ ? 1 : 0)]);
  }
  return next;
}

// Extracts the gradients from `backward`, the results of the backward loop without the counter.
Grads LoopGradient::ExtractGrads(const Outputs& backward) const {
  Grads grads(first_);
  size_t next = size();
  for (const Variable& v : variables_)
    grads.push_back(v.is_differentiable && !backward.empty() ? Grad(backward[next++]) : Grad());
  return grads;
}

Outputs DropFirst(Outputs list) {
  if (!list.empty()) list.erase(list.begin());
  return list;
}

Grads LoopGradient::WhileGradient() {
  graph_.Fail(FindVariables());
  if (!graph_.status().ok()) return {};
  const auto loop = [&](const FunctionRef& cond, const FunctionRef& body, const Output& count,
                        const Outputs& start) {
    Outputs all = {count};
    Append(start, &all);
    return graph_.status().ok()
               ? OutputsOf(AddNode(g_.node().op_name(), {all},
                                   {{"cond", AttrValue(cond)}, {"body", AttrValue(body)}}))
               : Outputs();
  };
  const FunctionRef cond = g_.attr<FunctionRef>("cond");
  const FunctionRef forward_cond =
      Define("forward_cond", ForwardTypes(), [&](Graph& graph, const Outputs& args) {
        return Call(graph, cond,
                    {args.begin() + 1, args.begin() + 1 + static_cast<int64_t>(size())});
      });
  const FunctionRef forward =
      Define("forward", ForwardTypes(), [&](Graph& graph, const Outputs& args) {
        Outputs next = {AddOp("AddV2", {args[0], Const(graph, 1)})};
        Append(Forward(graph, args), &next);
        return next;
      });
  const Outputs history = loop(forward_cond, forward, Const(graph_, 0), ForwardStart());
  if (history.empty()) return {};
  const FunctionRef backward_cond =
      Define("backward_cond", BackwardTypes(), [&](Graph& graph, const Outputs& args) {
        return Outputs{AddOp("Greater", {args[0], Const(graph, 0)})};
      });
  const FunctionRef backward =
      Define("backward", BackwardTypes(), [&](Graph& graph, const Outputs& args) {
        Outputs next = {AddOp("Sub", {args[0], Const(graph, 1)})};
        Append(Backward(graph, args), &next);
        return next;
      });
  return ExtractGrads(
      DropFirst(loop(backward_cond, backward, history[0], BackwardStart(DropFirst(history)))));
}

// The backward loop counts from the last value of the counter down to the first one. With n
// iterations the last value is start + (n - 1) * delta, where n - 1 = floor((limit - start -
// sign(delta)) / delta).
Grads LoopGradient::ForGradient() {
  graph_.Fail(FindVariables());
  if (!graph_.status().ok()) return {};
  const auto loop = [&](const Outputs& range, const FunctionRef& body, const Outputs& start) {
    return graph_.status().ok() ? OutputsOf(AddNode("For", {range[0], range[1], range[2], start},
                                                    {{"body", AttrValue(body)}}))
                                : Outputs();
  };
  const Output start = g_.x(0), limit = g_.x(1), delta = g_.x(2);
  const FunctionRef forward =
      Define("forward", ForwardTypes(),
             [&](Graph& graph, const Outputs& args) { return Forward(graph, args); });
  const Outputs history = loop({start, limit, delta}, forward, ForwardStart());
  const Output span = AddOp("Sub", {AddOp("Sub", {limit, start}), AddOp("Sign", {delta})});
  const Output steps = AddOp("FloorDiv", {span, delta});
  const Output last = AddOp("AddV2", {start, AddOp("Mul", {steps, delta})});
  if (!last.valid() || (history.empty() && size() > 0)) return {};
  const FunctionRef backward =
      Define("backward", BackwardTypes(),
             [&](Graph& graph, const Outputs& args) { return Backward(graph, args); });
  return ExtractGrads(loop({last, AddOp("Sub", {start, delta}), AddOp("Neg", {delta})}, backward,
                           BackwardStart(history)));
}

Grads FunctionalWhileGradient(GradContext& g) {
  return LoopGradient(g, /*first=*/0, /*counts=*/false).WhileGradient();
}

Grads FunctionalForGradient(GradContext& g) {
  return LoopGradient(g, /*first=*/3, /*counts=*/true).ForGradient();
}

// ---- op definitions

OpSpec WhileOp(absl::string_view name) {
  OpSpec op(name);
  op.In("input: T")
      .Out("output: T")
      .Attr("T: list(type) >= 0")
      .Attr("cond: func")
      .Attr("body: func")
      .Attr("output_shapes: list(shape) = []")
      .Attr("parallel_iterations: int = 10")
      .InferShape(DeclaredShapes)
      .Gradient(FunctionalWhileGradient);
  static const FunctionCalls* const calls = CallsOf({{"cond", "body"}, "T", 0, true});
  op.Calls(calls);
  return op;
}

}  // namespace

void AddFunctionLoopOps(OpRegistry* ops) {
  ops->Add(
      WhileOp("While").Stateful().Doc("Calls `body` repeatedly on its own results, starting with "
                                      "`input`, while `cond` returns true."));
  ops->Add(WhileOp("StatelessWhile").Doc("While, for stateless functions."));
  static const FunctionCalls* const for_calls = CallsOf({{"body"}, "T", 3, true, true});
  ops->Add(OpSpec("For")
               .In("start: int32, limit: int32, delta: int32, input: T")
               .Out("output: T")
               .Attr("T: list(type) >= 0")
               .Attr("body: func")
               .Calls(for_calls)
               .InferShape(UnknownShape)
               .Gradient(FunctionalForGradient)
               .Doc("Calls `body` repeatedly on the loop's counter and its own results. The "
                    "counter runs from `start` to `limit`, exclusive, in steps of `delta`."));
}

// ---- builders

Outputs FunctionalWhile(const Outputs& vars, const FunctionRef& cond, const FunctionRef& body,
                        absl::string_view name) {
  if (vars.empty() || !vars[0].valid()) return Outputs(vars.size());
  const std::optional<Callee> callee = FindCallees(vars[0].graph(), {cond, body});
  if (!callee) return Outputs(vars.size());
  return AllOutputs(AddNode(callee->stateful ? "While" : "StatelessWhile", {vars},
                            {{"cond", AttrValue(cond)}, {"body", AttrValue(body)}}, name),
                    vars.size());
}

Outputs FunctionalFor(Output start, Output limit, Output delta, const Outputs& vars,
                      const FunctionRef& body, absl::string_view name) {
  return AllOutputs(AddNode("For", {start, limit, delta, vars}, {{"body", AttrValue(body)}}, name),
                    vars.size());
}

}  // namespace weir
