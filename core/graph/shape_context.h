#ifndef WEIR_CORE_GRAPH_SHAPE_CONTEXT_H_
#define WEIR_CORE_GRAPH_SHAPE_CONTEXT_H_

#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"

// What the shape function of an op is given (OpSpec::InferShape), and common shape functions.
namespace WEIR_API weir {

// The context of a shape function: the node, what is known about its inputs, and the inferred
// outputs. A shape function runs when a node is built (little may be known) and when a Plan is made
// (nearly everything is known). It leaves outputs unknown (unknown rank, or -1 dimensions) where
// the inputs do not determine them, and returns INVALID_ARGUMENT only for inputs that can never be
// valid. Outputs start with unknown rank.
class ShapeContext {
 public:
  // The source of input values. Both functions may return "unknown". Their arguments are a node and
  // the index of one of its inputs.
  class Values {
   public:
    virtual ~Values() = default;
    // Returns the value of input i if it is known before the step runs (a constant), otherwise
    // null.
    virtual const Tensor* value(const Node& node, int i) = 0;
    // Returns input i, a vector of integers, as a shape; elements may be unknown.
    virtual Shape value_as_shape(const Node& node, int i) = 0;
  };

  // `inputs` and `handles` are indexed by input. All arguments outlive the context.
  ShapeContext(const Node& node, absl::Span<const Shape> inputs,
               absl::Span<const HandleData* const> handles, Values& values);

  // The node, whose attributes are set; its outputs are not inferred yet.
  const Node& node() const { return node_; }
  // Returns an attribute of the node, as Node::attr does.
  template <class T>
  T attr(absl::string_view name) const {
    return node_.attr<T>(name);
  }
  // The inputs' shapes, as far as they are known.
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  const Shape& input(int i) const { return inputs_[i]; }
  // Returns null if the value is not known yet.
  const Tensor* input_value(int i) { return values_.value(node_, i); }
  // Returns the shape given by the integer vector at input i; unknown rank if nothing is known. A
  // negative element other than -1 is INVALID_ARGUMENT; so is -1 unless `minus_one_is_unknown`.
  absl::StatusOr<Shape> InputAsShape(int i, bool minus_one_is_unknown = true);
  // Returns the handle data of a resource input; null if unknown.
  const HandleData* handle(int i) const { return handles_[i]; }

  // The outputs. A shape function sets each that it knows something about: its shape, and for a
  // resource handle also what is known of the variable.
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  void set_output(int i, Shape shape) { outputs_[i] = std::move(shape); }
  void set_all_outputs(const Shape& shape);
  void set_output_handle(int i, HandleData data) { output_handles_[i] = std::move(data); }
  // What has been set; the session and the graph read it.
  absl::Span<const Shape> outputs() const { return outputs_; }
  absl::Span<const std::optional<HandleData>> output_handles() const { return output_handles_; }

  // Returns the shape of input i if it has this rank (at least / at most this rank), otherwise
  // INVALID_ARGUMENT "Shape must be rank 2 but is rank 3". For an input of unknown rank, WithRank
  // returns `rank` unknown dimensions, the others return it unchanged.
  absl::StatusOr<Shape> WithRank(int i, int rank) const;
  absl::StatusOr<Shape> WithRankAtLeast(int i, int rank) const;
  absl::StatusOr<Shape> WithRankAtMost(int i, int rank) const;

 private:
  const Node& node_;
  absl::Span<const Shape> inputs_;
  absl::Span<const HandleData* const> handles_;
  Values& values_;
  absl::InlinedVector<Shape, 1> outputs_;
  absl::InlinedVector<std::optional<HandleData>, 1> output_handles_;
};

// Merges two dimensions that must agree: returns the known one, or INVALID_ARGUMENT if both are
// known and differ.
absl::StatusOr<int64_t> MergeDims(int64_t a, int64_t b);
// Arithmetic on dimensions, where -1 is unknown (but 0 times unknown is 0). Returns
// INVALID_ARGUMENT if the result is not a valid dimension.
absl::StatusOr<int64_t> AddDims(int64_t a, int64_t b);
absl::StatusOr<int64_t> MulDims(int64_t a, int64_t b);

// Common shape functions, used as InferShape(SameShape).
absl::Status SameShape(ShapeContext& c);       // every output has the shape of input 0
absl::Status ScalarShape(ShapeContext& c);     // every output is []
absl::Status UnknownShape(ShapeContext& c);    // every output is unknown
absl::Status NoOutputs(ShapeContext& c);       // for ops without outputs
absl::Status BroadcastShape(ShapeContext& c);  // output 0 is the broadcast of inputs 0 and 1
absl::Status MergedShape(ShapeContext& c);     // all inputs and output 0 have the same shape
// Output 0 has the shape given by the values of input 0 (Fill, random ops).
absl::Status ShapeFromInput0(ShapeContext& c);

// Values known at graph construction time: constants, and shapes computed by Shape, Pack, ConcatV2,
// StridedSlice, Cast, Identity and arithmetic on them.
ShapeContext::Values& GraphValues();

}  // namespace weir

#endif  // WEIR_CORE_GRAPH_SHAPE_CONTEXT_H_
