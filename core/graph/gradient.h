#ifndef WEIR_CORE_GRAPH_GRADIENT_H_
#define WEIR_CORE_GRAPH_GRADIENT_H_

#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"

// What the gradient function of an op takes and returns (OpSpec::Gradient, docs/add_an_op.md).
namespace WEIR_API weir {

// A sparse set of rows: row i of `values` is row indices[i] of a tensor of shape `dense_shape`.
// Duplicate indices are summed. This is the gradient of a gather; it stays sparse all the way to
// the optimizer.
struct IndexedSlices {
  Output values;       // [rows, ...]
  Output indices;      // [rows], int32 or int64
  Output dense_shape;  // invalid if unknown
};

// The gradient with respect to one tensor: none (zero, or not differentiable), dense, or
// IndexedSlices.
class Grad {
 public:
  Grad() = default;
  // A dense gradient, of the tensor's shape and dtype; and a sparse one. An invalid Output is none.
  Grad(Output dense) : dense_(dense) {}
  Grad(IndexedSlices slices) : slices_(slices), is_slices_(true) {}
  // Which of the three it is.
  bool none() const { return !is_slices_ && !dense_.valid(); }
  bool is_slices() const { return is_slices_; }
  // The tensor, or the slices; invalid for the other kinds.
  const Output& dense() const { return dense_; }
  const IndexedSlices& slices() const { return slices_; }
  // Returns the node that computes it (slices: the node of `values`); null if none.
  Node* node() const { return is_slices_ ? slices_.values.node : dense_.node; }

 private:
  Output dense_;
  IndexedSlices slices_;
  bool is_slices_ = false;
};
// Gradients, one for each input or output of a node.
using Grads = std::vector<Grad>;

// The context of a gradient function. The function runs in the name scope "gradients/<op>_grad/",
// with colocation as requested; control dependencies in effect at the call of Gradients stay in
// effect, as in TensorFlow. It returns one Grad per input (missing ones are none) and follows the
// structure of TensorFlow's gradient function for the op, so that imported and built graphs agree
// node by node.
class GradContext {
 public:
  // `output_grads` has one gradient for each output of `node`.
  GradContext(Node& node, Grads output_grads) : node_(node), dys_(std::move(output_grads)) {}
  // The node to differentiate, and the graph to which the gradient's nodes are added.
  Node& node() const { return node_; }
  Graph& graph() const { return node_.graph(); }
  // Returns an attribute of the node, as Node::attr does.
  template <class T>
  T attr(absl::string_view name) const {
    return node_.attr<T>(name);
  }
  // The node's inputs and outputs.
  int num_inputs() const { return node_.num_inputs(); }
  Output x(int i = 0) const { return node_.input(i); }
  Output y(int i = 0) const { return node_.output(i); }
  // Returns the dense gradient with respect to output i: IndexedSlices are summed into a dense
  // tensor, and zeros are returned for differentiable outputs without a gradient. Invalid for
  // outputs of types that have no gradients.
  Output dy(int i = 0);
  // The gradient with respect to output i as it was found, perhaps sparse or none.
  const Grad& dy_grad(int i = 0) const { return dys_[i]; }

 private:
  Node& node_;
  Grads dys_;
};

}  // namespace weir

#endif  // WEIR_CORE_GRAPH_GRADIENT_H_
