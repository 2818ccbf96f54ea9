#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "weir/core/io/function_library.h"
#include "weir/ops/framework/backprop_internal.h"
#include "weir/ops/framework/function.h"
#include "weir/ops/framework/function_internal.h"
#include "weir/ops/framework/gradient_util.h"
#include "weir/ops/lib/array.h"

// Selects the gradient rule of a node.
//
// The rule is that of the node's op, unless the node has the attribute `_gradient_op_type`, which
// names another rule. TensorFlow's gradient_override_map sets it, and tf.custom_gradient marks the
// IdentityN around its results with it. TensorFlow looks the name up among the Python functions
// that were registered with RegisterGradient, including all built-in rules. Here it is, in this
// order,
//
// * an op definition of that name in the graph's ops, built in ("Identity", for a straight-through
// estimator) or the program's own: OpSpec("GuidedRelu").Gradient(...) is a rule without an op;
// * a function that the library declares under that name in `registered_gradients`, as in
// SavedModels written with experimental_custom_gradients. It takes the gradients of the node's
// results, and returns the gradients of the node's inputs. Most such functions were traced from a
// Python function that uses values of the forward computation; the traced function takes these as
// further arguments, and the object graph of the SavedModel says which they are: tensors of the
// function in which the node lies, or what that function has captured itself.
//
// An unknown name is an error, because the op's own rule would be the gradient of a different
// function. The one exception is TensorFlow's mark of a call of a tf.function. Its rule is the
// gradient of the function's body, which is the gradient of a call here.
namespace weir {

namespace {

constexpr char kOverride[] = "_gradient_op_type";

// "PartitionedCall-12", "StatefulPartitionedCall-3".
bool MarksCallOfFunction(const Node& node, const std::string& name) {
  const bool is_call = node.op().is_function() || absl::EndsWith(node.op_name(), "PartitionedCall");
  const std::pair<std::string, std::string> parts = absl::StrSplit(name, absl::MaxSplits('-', 1));
  return is_call && absl::EndsWith(parts.first, "PartitionedCall") && !parts.second.empty();
}

std::vector<std::string> DeclaredGradients(const Node& node, const std::string& name) {
  const auto& library = node.graph().functions();
  return library == nullptr ? std::vector<std::string>() : library->RegisteredGradients(name);
}

// Finds a value that a gradient function has captured among those of the graph that is
// differentiated. Returns an invalid output if it is not there.
Output FindCaptured(Graph& graph, const CapturedValue& value) {
  const FunctionOrigin& origin = graph.Extension<FunctionOrigin>();
  if (origin.function.empty()) return {};
  if (value.function == origin.function) {
    const absl::StatusOr<Output> tensor = graph.FindOutput(
        origin.prefix.empty() ? value.tensor : absl::StrCat(origin.prefix, "/", value.tensor));
    return tensor.value_or(Output());
  }
  const FunctionCaptures* const own = graph.functions()->FindCaptures(origin.function);
  if (own == nullptr || own->values.size() > origin.args.size()) return {};
  const auto at = absl::c_find(own->values, value);
  return at == own->values.end() ? Output() : *(origin.args.end() - (own->values.end() - at));
}

std::string Describe(const CapturedValue& value) {
  return value.function.empty() ? absl::StrCat("object ", value.object, " of the model")
                                : absl::StrCat("'", value.tensor, "' of '", value.function, "'");
}

// The arguments of a gradient function that the library declares, and the node's inputs for which
// it has results.
class DeclaredCall {
 public:
  DeclaredCall(GradContext& g, std::string name, std::string function)
      : g_(g), name_(std::move(name)), function_(std::move(function)) {}

  absl::Status Prepare() {
    Graph& graph = g_.graph();
    WEIR_ASSIGN_OR_RETURN(const OpSpec* const op, graph.functions()->FindOp(function_));
    const auto num_inputs = static_cast<size_t>(g_.num_inputs());
    const auto num_outputs = static_cast<size_t>(g_.node().num_outputs());
    const FunctionCaptures* captures = graph.functions()->FindCaptures(function_);
    const size_t num_captures = captures == nullptr ? 0 : captures->values.size();
    const bool takes_inputs = num_captures == 0 && op->inputs().size() == num_inputs + num_outputs;
    has_result_.assign(num_inputs, true);
    if (captures != nullptr && captures->is_tensor.size() == num_inputs)
      has_result_ = captures->is_tensor;
    const auto num_results = static_cast<size_t>(absl::c_count(has_result_, true));
    if ((!takes_inputs && op->inputs().size() != num_outputs + num_captures) ||
        op->outputs().size() != num_results) {
      return Unimplemented(
          Subject(), " of ", op->inputs().size(), " arguments and ", op->outputs().size(),
          " results; expected ", num_outputs, " arguments (or ", num_inputs + num_outputs,
          ", the inputs first) and ", num_inputs,
          " results. What a function has captured is known only of functions that are read with "
          "their SavedModel. ",
          Advice());
    }
    for (size_t i = 0; takes_inputs && i < num_inputs; ++i)
      args_.push_back(g_.x(static_cast<int>(i)));
    for (size_t i = 0; i < num_outputs; ++i) {
      const Output dy = g_.dy(static_cast<int>(i));
      args_.push_back(dy.valid() ? dy : AddOp("ZerosLike", {g_.y(static_cast<int>(i))}));
    }
    for (size_t k = 0; k < num_captures; ++k) {
      args_.push_back(FindCaptured(graph, captures->values[k]));
      if (args_.back().valid()) continue;
      return Unimplemented(
          Subject(), ", which has captured ", Describe(captures->values[k]),
          ": that is neither in the function of the operation nor captured by it. ", Advice());
    }
    return absl::OkStatus();
  }

  Grads Run() const {
    const Outputs results = Call(g_.graph(), FunctionRef{function_}, args_);
    Grads grads(has_result_.size());
    size_t next = 0;
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!has_result_[i]) continue;
      const Output dx = results[next++];
      if (IsTrainable(g_.x(static_cast<int>(i)).dtype())) grads[i] = Grad(dx);
    }
    return grads;
  }

 private:
  std::string Subject() const {
    return absl::StrCat("The gradient of ", g_.node().Label(), ", registered as '", name_,
                        "', is the function '", function_, "'");
  }
  std::string Advice() const {
    return absl::StrCat("Add a rule in C++, OpSpec(\"", name_,
                        "\").Gradient(...), to the graph's ops.");
  }

  GradContext& g_;
  std::string name_, function_;
  Outputs args_;
  std::vector<bool> has_result_;  // by input of the node
};

Grads CallDeclaredGradient(GradContext& g) {
  const std::string name = g.node().attr_or<std::string>(kOverride, "");
  const std::vector<std::string> functions = DeclaredGradients(g.node(), name);
  if (functions.size() != 1) {
    g.graph().Fail(InvalidArgument("'", name, "', the gradient of ", g.node().Label(),
                                   ", is registered for several functions: '",
                                   absl::StrJoin(functions, "', '"),
                                   "'. Import the models into graphs of their own"));
    return {};
  }
  DeclaredCall call(g, name, functions[0]);
  if (const absl::Status status = call.Prepare(); !status.ok()) {
    g.graph().Fail(status);
    return {};
  }
  return call.Run();
}

}  // namespace

absl::StatusOr<GradientRule> RuleOf(const Node& node) {
  static const GradientFn* const call = new GradientFn(CallGradient);
  static const GradientFn* const declared = new GradientFn(CallDeclaredGradient);
  const GradientRule own{node.op().is_function() ? call : &node.op().gradient_fn(),
                         node.op().not_differentiable()};
  const AttrValue* const attr = node.FindAttr(kOverride);
  if (attr == nullptr) return own;
  const std::string name = node.attr_or<std::string>(kOverride, "");
  if (const OpSpec* spec = node.graph().ops().Find(name);
      spec != nullptr && (spec->gradient_fn() || spec->not_differentiable())) {
    return GradientRule{&spec->gradient_fn(), spec->not_differentiable()};
  }
  if (!DeclaredGradients(node, name).empty()) return GradientRule{declared, false};
  if (MarksCallOfFunction(node, name)) return own;
  return NotFound("No gradient is registered as '", name, "', which '", kOverride,
                  "' of operation ", node.Label(), " names. Register it in C++ with OpSpec(\"",
                  name,
                  "\").Gradient(...) among the ops of the graph, or insert StopGradient to treat "
                  "the operation as a constant.");
}

}  // namespace weir
