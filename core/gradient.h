#ifndef WEIR_CORE_GRADIENT_H_
#define WEIR_CORE_GRADIENT_H_

#include <vector>

#include "weir/core/graph.h"

namespace weir {

// Some rows of a tensor: row i of `values` belongs at row indices[i] of a tensor of shape
// `dense_shape`; an index may come more than once, and then the rows add up. The gradient of a
// gather, which never becomes dense on its way to the optimizer.
struct IndexedSlices {
  Output values;
  Output indices;
  Output dense_shape;  // may be invalid: not known
};

// The gradient with respect to one tensor: none (zero, or not differentiable), dense, or rows.
class Grad {
 public:
  Grad() = default;
  Grad(Output dense) : dense_(dense) {}
  Grad(IndexedSlices slices) : slices_(slices), is_slices_(true) {}
  bool none() const { return !is_slices_ && !dense_.valid(); }
  bool is_slices() const { return is_slices_; }
  const Output& dense() const { return dense_; }
  const IndexedSlices& slices() const { return slices_; }
  // The node that computed it (slices: their values); null if none.
  Node* node() const { return is_slices_ ? slices_.values.node : dense_.node; }

 private:
  Output dense_;
  IndexedSlices slices_;
  bool is_slices_ = false;
};
using Grads = std::vector<Grad>;

// What a gradient rule sees. It runs with the name scope "gradients/<op>_grad/" open and nodes
// colocated as asked; control dependencies around the call of Gradients stay in force, as in
// TensorFlow. It returns one Grad for each input (fewer: the rest has none) and follows the
// structure of TensorFlow's rule for the op, so that imported and built graphs agree node by node.
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
  // The gradient that arrived at output i, dense (rows are summed into a dense tensor; outputs that
  // got none but could have are zeros). Invalid for outputs of types without gradients.
  Output dy(int i = 0);
  const Grad& dy_grad(int i = 0) const { return dys_[i]; }

 private:
  Node& node_;
  Grads dys_;
};

}  // namespace weir

#endif  // WEIR_CORE_GRADIENT_H_
