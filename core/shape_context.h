#ifndef WEIR_CORE_SHAPE_CONTEXT_H_
#define WEIR_CORE_SHAPE_CONTEXT_H_

#include <vector>

#include "weir/core/graph.h"

namespace weir {

// What a shape rule sees: the node, what is known of its inputs, and where to put what follows for
// its outputs. A rule is called when a node is built (little may be known) and when a Plan is made
// (nearly all is). It leaves an output unknown (unknown rank, or -1 dims) where inputs do not
// decide it, and returns INVALID_ARGUMENT only for inputs that can never be right. Outputs start as
// unknown rank.
class ShapeContext {
 public:
  // Where input values come from. Both may return "unknown".
  class Values {
   public:
    virtual ~Values() = default;
    // The value of input i if it is known before the step runs (a constant), else null.
    virtual const Tensor* value(const Node& node, int i) = 0;
    // Input i, a vector of integers, taken as a shape; elements may be unknown.
    virtual Shape value_as_shape(const Node& node, int i) = 0;
  };

  // By input. The context uses both for as long as it lives.
  ShapeContext(const Node& node, absl::Span<const Shape> inputs,
               absl::Span<const HandleData* const> handles, Values& values);

  const Node& node() const { return node_; }
  template <class T>
  T attr(absl::string_view name) const {
    return node_.attr<T>(name);
  }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  const Shape& input(int i) const { return inputs_[i]; }
  // Null when the value is not known yet.
  const Tensor* input_value(int i) { return values_.value(node_, i); }
  // The shape that the integer vector at input i spells out; unknown rank when nothing is known. A
  // negative element other than -1 is INVALID_ARGUMENT; with `minus_one_is_unknown` false, -1 is
  // too.
  absl::StatusOr<Shape> InputAsShape(int i, bool minus_one_is_unknown = true);
  // What a resource input refers to; null when unknown.
  const HandleData* handle(int i) const { return handles_[i]; }

  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  void set_output(int i, Shape shape) { outputs_[i] = std::move(shape); }
  void set_all_outputs(const Shape& shape);
  void set_output_handle(int i, HandleData data) { output_handles_[i] = std::move(data); }
  absl::Span<const Shape> outputs() const { return outputs_; }
  absl::Span<const std::optional<HandleData>> output_handles() const { return output_handles_; }

  // Input i, which must have this rank (or at least / at most it); INVALID_ARGUMENT "Shape must be
  // rank 2 but is rank 3". An input of unknown rank comes back as `rank` unknown dims (WithRank),
  // or as it is.
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

// One dimension out of two that must agree: the known one; INVALID_ARGUMENT if both are known and
// differ.
absl::StatusOr<int64_t> MergeDims(int64_t a, int64_t b);
// Arithmetic on dimensions that keeps -1 for unknown (but 0 times unknown is 0). INVALID_ARGUMENT
// for a result that no dimension can be.
absl::StatusOr<int64_t> AddDims(int64_t a, int64_t b);
absl::StatusOr<int64_t> MulDims(int64_t a, int64_t b);

// Common rules, used as InferShape(SameShape).
absl::Status SameShape(ShapeContext& c);       // every output like input 0
absl::Status ScalarShape(ShapeContext& c);     // every output []
absl::Status UnknownShape(ShapeContext& c);    // nothing is known
absl::Status NoOutputs(ShapeContext& c);       // for ops without outputs
absl::Status BroadcastShape(ShapeContext& c);  // output 0 is the broadcast of inputs 0 and 1
absl::Status MergedShape(ShapeContext& c);     // all inputs and output 0 have one shape
absl::Status ShapeFromInput0(
    ShapeContext& c);  // output 0 has the shape that input 0 spells out (Fill, random ops)

// Knowledge at graph-building time: constants, and shapes spelled out through Shape, Pack,
// ConcatV2, StridedSlice, Cast, Identity and arithmetic on them.
ShapeContext::Values& GraphValues();

}  // namespace weir

#endif  // WEIR_CORE_SHAPE_CONTEXT_H_
