#ifndef WEIR_OPS_GRADIENTS_H_
#define WEIR_OPS_GRADIENTS_H_

#include <initializer_list>
#include <vector>

#include "weir/core/gradient.h"

namespace weir {

class Variable;  // ops/variables.h

// Something to differentiate with respect to: a tensor, or a variable (its handle or reference, so
// that every read of it counts).
struct GradientSource {
  GradientSource(const Output& tensor) : output(tensor) {}
  GradientSource(const Variable& variable);
  Output output;
};

// A list of them: `{x, w}`, Outputs, or variables.
struct GradientSources {
  GradientSources() = default;
  GradientSources(std::initializer_list<GradientSource> sources);
  GradientSources(const Outputs& tensors) : outputs(tensors) {}
  GradientSources(const std::vector<Variable>& variables);
  Outputs outputs;
};

// What an x gets that no y depends on.
enum class UnconnectedGradients { kNone, kZero };

// How several gradients of one tensor are summed: all by one AddN, or pair by pair, so that each
// may be freed early.
enum class Aggregation { kAddN, kTree };

struct GradientsOptions {
  // What to start from: one for each y, none where ones are meant. Empty: ones for every y.
  Grads grad_ys = {};
  // The name scope that everything is built in.
  absl::string_view name = "gradients";
  // Nodes of an op's gradient are placed with the op (`_class: loc:@op`).
  bool colocate_gradients_with_ops = false;
  // An op's input gradients are given out only when all of them are computed.
  bool gate_gradients = false;
  Aggregation aggregation = Aggregation::kAddN;
  // Tensors taken as constants.
  GradientSources stop_gradients = {};
  UnconnectedGradients unconnected_gradients = UnconnectedGradients::kNone;
};

// Adds the nodes that compute the gradients of sum(ys) with respect to each x, and returns one Grad
// for each x: none if no y depends on it differentiably; rows (IndexedSlices) where it was gathered
// from. Gradients stop at integers, strings and ops that are not differentiable; a variable may be
// given itself, or one of its reads. May be applied to its own results (second derivatives).
//
// A node whose attribute `_gradient_op_type` names another rule is differentiated by that one, as
// TensorFlow's gradient_override_map and custom_gradient have it: the gradient of the record of
// that name among the graph's ops (any op's, or OpSpec("Name").Gradient(...) of the program's own),
// else the function that the library registers under it. AttrScope(g, "_gradient_op_type", name)
// marks nodes as they are built.
//
// Errors stick to the graph, and every Grad is none then: NOT_FOUND for a `_gradient_op_type` that
// nobody registered, UNIMPLEMENTED for an op between ys and xs
// that has no gradient rule, naming it and the path it lies on; INVALID_ARGUMENT for a y that is
// not numeric, a complex y without a grad_y, a grad_y of another kind of number, grad_ys of another
// count than ys.
Grads Gradients(const Outputs& ys, const GradientSources& xs, const GradientsOptions& options = {});

// The same, with rows summed into dense tensors; an invalid Output where there is no gradient.
Outputs DenseGradients(const Outputs& ys, const GradientSources& xs,
                       const GradientsOptions& options = {});

// A gradient as a dense tensor: rows are summed with UnsortedSegmentSum, in the current name scope;
// none stays invalid.
Output DenseGradient(const Grad& grad);

}  // namespace weir

#endif  // WEIR_OPS_GRADIENTS_H_
