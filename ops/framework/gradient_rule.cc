#include "absl/strings/match.h"
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
// SavedModels written with experimental_custom_gradients.
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

std::string DeclaredGradient(const Node& node, const std::string& name) {
  const auto& library = node.graph().functions();
  return library == nullptr ? "" : library->RegisteredGradient(name);
}

// Calls the function that the library declares. It takes the inputs of the node, if it has
// arguments for them, and the gradients of the results, and returns one tensor for each input.
Grads CallDeclaredGradient(GradContext& g) {
  const std::string name = g.node().attr_or<std::string>(kOverride, "");
  const std::string function = DeclaredGradient(g.node(), name);
  Graph& graph = g.graph();
  const absl::StatusOr<const OpSpec*> op = graph.functions()->FindOp(function);
  if (!op.ok()) {
    graph.Fail(op.status());
    return {};
  }
  const auto num_args = static_cast<int>((*op)->inputs().size());
  const auto num_results = static_cast<int>((*op)->outputs().size());
  const int num_inputs = g.num_inputs(), num_outputs = g.node().num_outputs();
  const bool takes_inputs = num_args == num_inputs + num_outputs;
  if ((!takes_inputs && num_args != num_outputs) || num_results != num_inputs) {
    graph.Fail(Unimplemented(
        "The gradient of ", g.node().Label(), ", registered as '", name, "', is the function '",
        function, "' of ", num_args, " arguments and ", num_results, " results; expected ",
        num_outputs, " arguments (or ", num_inputs + num_outputs, ", the inputs first) and ",
        num_inputs, " results. A function that captures tensors or omits results needs a ",
        "rule in C++: add OpSpec(\"", name, "\").Gradient(...) to the graph's ops."));
    return {};
  }
  Outputs args;
  for (int i = 0; takes_inputs && i < num_inputs; ++i) args.push_back(g.x(i));
  for (int i = 0; i < num_outputs; ++i) {
    const Output dy = g.dy(i);
    args.push_back(dy.valid() ? dy : AddOp("ZerosLike", {g.y(i)}));
  }
  Grads grads;
  for (const Output& dx : Call(graph, FunctionRef{function}, args)) {
    const bool has_gradient = IsTrainable(g.x(static_cast<int>(grads.size())).dtype());
    grads.push_back(has_gradient ? Grad(dx) : Grad());
  }
  return grads;
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
  if (!DeclaredGradient(node, name).empty()) return GradientRule{declared, false};
  if (MarksCallOfFunction(node, name)) return own;
  return NotFound("No gradient is registered as '", name, "', which '", kOverride,
                  "' of operation ", node.Label(), " names. Register it in C++ with OpSpec(\"",
                  name,
                  "\").Gradient(...) among the ops of the graph, or insert StopGradient to treat "
                  "the operation as a constant.");
}

}  // namespace weir
