#ifndef WEIR_OPS_FRAMEWORK_GRADIENTS_H_
#define WEIR_OPS_FRAMEWORK_GRADIENTS_H_

#include <initializer_list>
#include <vector>

#include "weir/core/graph/gradient.h"
#include "weir/core/tensor/api.h"

namespace WEIR_API weir {

class Variable;  // ops/framework/variables.h

// A differentiation source: a tensor or a variable. A variable stands for its handle or reference,
// so all of its reads contribute.
struct GradientSource {
  // A tensor, and a variable.
  GradientSource(const Output& tensor) : output(tensor) {}
  GradientSource(const Variable& variable);
  Output output;  // whose gradient is computed; invalid for an invalid source
};

// A list of sources: `{x, w}`, Outputs, or variables.
struct GradientSources {
  GradientSources() = default;
  // Sources of both kinds, or of one.
  GradientSources(std::initializer_list<GradientSource> sources);
  GradientSources(const Outputs& tensors) : outputs(tensors) {}
  GradientSources(const std::vector<Variable>& variables);
  Outputs outputs;  // in order
};

// The gradient of an x that no y depends on.
enum class UnconnectedGradients { kNone, kZero };

// How several gradients of one tensor are summed: all by one AddN, or pairwise, so that each can be
// freed early.
enum class Aggregation { kAddN, kTree };

// Options of Gradients.
struct GradientsOptions {
  // The initial gradients: one for each y; an empty Grad means ones. An empty list means ones for
  // every y.
  Grads grad_ys = {};
  // The name scope of all new nodes.
  absl::string_view name = "gradients";
  // Colocates the nodes of an op's gradient with the op (`_class: loc:@op`).
  bool colocate_gradients_with_ops = false;
  // Makes the input gradients of an op available only when all of them are computed.
  bool gate_gradients = false;
  // Builds what TensorFlow's C++ gradients build: nodes have the names of their ops in the scope,
  // as in "gradients/MatMul_1" instead of "gradients/logits_grad/MatMul_1", missing initial
  // gradients are OnesLike, and given ones are used without an Identity.
  bool as_in_cpp = false;
  Aggregation aggregation = Aggregation::kAddN;
  // Tensors to treat as constants.
  GradientSources stop_gradients = {};
  UnconnectedGradients unconnected_gradients = UnconnectedGradients::kNone;
};

// Adds the nodes that compute the gradients of sum(ys) with respect to each x, and returns one Grad
// for each x. A Grad is none if no y depends on x differentiably, and an IndexedSlices if x is only
// gathered from. Gradients stop at integers, strings and ops that are not differentiable. An x may
// be a variable or one of its reads. Gradients can be applied to its own results (second
// derivatives).
//
// A node whose attribute `_gradient_op_type` names another gradient rule uses that rule, as with
// TensorFlow's gradient_override_map and custom_gradient: the gradient of the op definition of that
// name among the graph's ops (any op, or OpSpec("Name").Gradient(...) of the program's own), or
// else the function that the library registers under it. AttrScope(g, "_gradient_op_type", name)
// sets the attribute on new nodes.
//
// Errors are recorded in the graph, and every Grad is then none: NOT_FOUND for an unregistered
// `_gradient_op_type`; UNIMPLEMENTED for an op between ys and xs without a gradient rule, with the
// op's name and a path through it; INVALID_ARGUMENT for a y that is not numeric, a complex y
// without a grad_y, a grad_y of another kind of number, or a number of grad_ys that differs from
// the number of ys.
Grads Gradients(const Outputs& ys, const GradientSources& xs, const GradientsOptions& options = {});

// Like Gradients, with IndexedSlices converted to dense tensors. An x without a gradient gets an
// invalid Output.
Outputs DenseGradients(const Outputs& ys, const GradientSources& xs,
                       const GradientsOptions& options = {});

// Returns a gradient as a dense tensor: sums IndexedSlices with UnsortedSegmentSum, in the current
// name scope. Returns an invalid Output for none.
Output DenseGradient(const Grad& grad);

}  // namespace weir

#endif  // WEIR_OPS_FRAMEWORK_GRADIENTS_H_
