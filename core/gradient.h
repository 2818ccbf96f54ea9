#ifndef WEIR_CORE_GRADIENT_H_
#define WEIR_CORE_GRADIENT_H_

#include <vector>

#include "weir/core/graph.h"

namespace weir {

// A sparse set of rows: row i of `values` is row indices[i] of a tensor of shape `dense_shape`.
// Duplicate indices are summed. This is the gradient of a gather; it stays sparse all the way to
// the optimizer.
struct IndexedSlices {
  Output values;
  Output indices;
  Output dense_shape;  // invalid if unknown
};

// The gradient with respect to one tensor: none (zero, or not differentiable), dense, or
// IndexedSlices.
class Grad {
 public:
  Grad() = default;
  Grad(Output dense) : dense_(dense) {}
  Grad(IndexedSlices slices) : slices_(slices), is_slices_(true) {}
  bool none() const { return !is_slices_ && !dense_.valid(); }
  bool is_slices() const { return is_slices_; }
  const Output& dense() const { return dense_; }
  const IndexedSlices& slices() const { return slices_; }
  // Returns the node that computes it (slices: the node of `values`); null if none.
  Node* node() const { return is_slices_ ? slices_.values.node : dense_.node; }

 private:
  Output dense_;
  IndexedSlices slices_;
  bool is_slices_ = false;
};
using Grads = std::vector<Grad>;

// The context of a gradient function. The function runs in the name scope "gradients/<op>_grad/",
// with colocation as requested; control dependencies in effect at the call of Gradients stay in
// effect, as in TensorFlow. It returns one Grad per input (missing ones are none) and follows the
// structure of TensorFlow's gradient function for the op, so that imported and built graphs agree
// node by node.
class GradContext {
 public:
  GradContext(Node& node, Grads output_grads) : node_(node), dys_(std::move(output_grads)) {}
  Node& node() const { return node_; }
  Graph& graph() const { return node_.graph(); }
  template <class T>
  T attr(absl::string_view name) const {
    return node_.attr<T>(name);
  }
  int num_inputs() const { return node_.num_inputs(); }
  Output x(int i = 0) const { return node_.input(i); }
  Output y(int i = 0) const { return node_.output(i); }
  // Returns the dense gradient with respect to output i: IndexedSlices are summed into a dense
  // tensor, and zeros are returned for differentiable outputs without a gradient. Invalid for
  // outputs of types that have no gradients.
  Output dy(int i = 0);
  const Grad& dy_grad(int i = 0) const { return dys_[i]; }

 private:
  Node& node_;
  Grads dys_;
};

}  // namespace weir

#endif  // WEIR_CORE_GRADIENT_H_
