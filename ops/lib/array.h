#ifndef WEIR_OPS_LIB_ARRAY_H_
#define WEIR_OPS_LIB_ARRAY_H_

#include <complex>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/lib/literal.h"

// Builders that create, describe, slice, concatenate and rearrange tensors: TensorFlow's array_ops.
// Each builder adds the nodes that the Python function of the same name adds, under the same names,
// and returns the same results. The last argument is the name. An error (for example an invalid
// rank or axis) is recorded in the graph, and the builder returns an invalid Output.
namespace WEIR_API weir {

// An integer argument (shape, axis, sizes): a tensor or a literal. A literal becomes a Const named
// "<node>/<argument>" of dtype int32, or int64 if int32 cannot represent it.
//   Reshape(x, {-1, 784});  Reshape(x, ShapeTensor(y));  Concat({a, b}, 1);
//   Pad(x, {{1, 1}, {0, 2}})
class Ints {
 public:
  Ints() = default;  // an empty vector
  // A tensor of the graph, and literals: a scalar, a vector, the extents of a fully defined shape.
  Ints(Output tensor) : tensor_(tensor), is_tensor_(true) {}
  Ints(int64_t scalar) : values_{scalar}, is_scalar_(true) {}
  Ints(int scalar) : Ints(static_cast<int64_t>(scalar)) {}
  Ints(std::initializer_list<int64_t> list) : values_(list) {}
  Ints(std::vector<int64_t> list) : values_(std::move(list)) {}
  Ints(const Shape& shape) : values_(shape.dims().begin(), shape.dims().end()) {}
  Ints(std::initializer_list<std::pair<int64_t, int64_t>> rows)
      : columns_(2) {  // a matrix with two columns
    for (const auto& [a, b] : rows) values_.insert(values_.end(), {a, b});
  }

  // Whether it is a tensor, and that tensor; otherwise the literal's elements in row-major order.
  bool is_tensor() const { return is_tensor_; }
  const Output& tensor() const { return tensor_; }
  const std::vector<int64_t>& values() const { return values_; }
  // Returns the tensor, or a Const with this name that holds the literal. `dtype` applies to the
  // literal only; DT_INVALID selects int32 or int64 automatically.
  Output In(Graph& graph, absl::string_view name, DataType dtype = DT_INVALID) const;

 private:
  Output tensor_;
  std::vector<int64_t> values_;
  bool is_tensor_ = false, is_scalar_ = false;
  int columns_ = 0;
};

// ---- constants

// Returns a one-element tensor of any numeric or boolean dtype that holds this value, converted
// (true, 1, 1.0, 1+0i). Returns INVALID_ARGUMENT for other dtypes and for integer dtypes that
// cannot represent the value.
absl::StatusOr<Tensor> ScalarTensor(DataType dtype, double value);

// Adds a constant. The graph shares the tensor's memory, and variables initialized from it may
// share it too, so the caller must not write to the tensor afterward.
Output Const(Graph& graph, Tensor value, absl::string_view name = {});
// Adds a scalar of the C++ type's dtype: Const(g, 1.5f), Const(g, int64_t{3}). A double literal
// becomes float32, as in MakeVariable(g, 1.0); Const<double>(g, 1.0) keeps float64. The same
// applies to lists.
template <class T>
requires(std::is_arithmetic_v<T> || std::is_same_v<T, half> || std::is_same_v<T, bfloat16> ||
         std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) Output
    Const(Graph& graph, T value, absl::string_view name = {}) {
  return Const(graph, Tensor::Scalar<T>(value), name);
}
// Scalars: a float32, and strings.
inline Output Const(Graph& graph, double value, absl::string_view name = {}) {
  return Const<float>(graph, static_cast<float>(value), name);
}
inline Output Const(Graph& graph, const char* text, absl::string_view name = {}) {
  return Const(graph, Tensor::Scalar(text), name);
}
inline Output Const(Graph& graph, std::string text, absl::string_view name = {}) {
  return Const(graph, Tensor::Scalar(std::move(text)), name);
}
// Adds a vector: Const(g, {1.f, 2.f}), Const<int64_t>(g, {1, 2}).
template <class T>
Output Const(Graph& graph, std::initializer_list<T> values, absl::string_view name = {}) {
  return Const(graph, Tensor::Vector<T>(values), name);
}
Output Const(Graph& graph, std::initializer_list<double> values, absl::string_view name = {});
template <class T>
Output Const(Graph& graph, const std::vector<T>& values, absl::string_view name = {}) {
  return Const(graph, Tensor::Vector<T>(absl::Span<const T>(values)), name);
}
// Adds a tensor of this shape with the given elements in row-major order: Const<float>(g, {2, 2},
// {1, 2, 3, 4}).
template <class T>
Output Const(Graph& graph, const Shape& shape, std::initializer_list<T> values,
             absl::string_view name = {}) {
  return Const(graph, Tensor::Of<T>(shape, values), name);
}
// Adds a literal as a tensor of the given dtype. INVALID_ARGUMENT if it cannot be converted.
Output ConstOf(Graph& graph, DataType dtype, const Literal& value, absl::string_view name = {});
// Adds a literal with the dtype of `like`.
Output ConstLike(Output like, const Literal& value, absl::string_view name = {});

// Adds a tensor that the caller must feed. The shape may be partially or completely unknown
// (Shape::UnknownRank()).
Output Placeholder(Graph& graph, DataType dtype, const Shape& shape = Shape::UnknownRank(),
                   absl::string_view name = {});
// Returns `input` unless the result is fed. A fed value must be compatible with `shape`.
Output PlaceholderWithDefault(Output input, const Shape& shape, absl::string_view name = {});

// Return tensors of zeros or ones: a Const named "zeros" or "ones" if the shape is a literal with
// fewer than 1,000 elements, otherwise a Fill.
Output Zeros(Graph& graph, const Ints& shape, DataType dtype = DT_FLOAT,
             absl::string_view name = {});
Output Ones(Graph& graph, const Ints& shape, DataType dtype = DT_FLOAT,
            absl::string_view name = {});
// Return zeros or ones with the shape of `like`. A `dtype` of DT_INVALID selects the dtype of
// `like`. With `optimize`, which is Python's default, a static shape makes the result a constant.
Output ZerosLike(Output like, DataType dtype = DT_INVALID, absl::string_view name = {},
                 bool optimize = true);
Output OnesLike(Output like, DataType dtype = DT_INVALID, absl::string_view name = {},
                bool optimize = true);
// Returns a tensor of shape `dims` filled with the scalar `value`.
Output Fill(const Ints& dims, Output value, absl::string_view name = {});

// ---- identity, checks and casts

Output Identity(Output x, absl::string_view name = {});
Outputs IdentityN(const Outputs& xs, absl::string_view name = {});
Output Snapshot(Output x, absl::string_view name = {});
Output DeepCopy(Output x, absl::string_view name = {});
// Returns x and stops the gradient.
Output StopGradient(Output x, absl::string_view name = {});
// Returns x. Differentiating through it is an error that contains `message`.
Output PreventGradient(Output x, absl::string_view message, absl::string_view name = {});
Output GuaranteeConst(Output x, absl::string_view name = {});
// Returns x with the static shape refined to `shape`. The step fails if the actual shape does not
// match.
Output EnsureShape(Output x, const Shape& shape, absl::string_view name = {});
// Returns x. The step fails with INVALID_ARGUMENT "<message> : Tensor had NaN values" if x contains
// a NaN or an infinity.
Output CheckNumerics(Output x, absl::string_view message, absl::string_view name = {});
// Reinterprets the bits of x as another dtype. If the element sizes differ, the last dimension is
// added, removed or scaled.
Output Bitcast(Output x, DataType type, absl::string_view name = {});

// ---- shapes

// Return the shape of x as a vector, the number of elements of x, and the rank of x. The result is
// a Const if it is static; `optimize` = false always adds the node.
Output ShapeTensor(Output x, DataType out_type = DT_INT32, absl::string_view name = {},
                   bool optimize = true);
Output Size(Output x, DataType out_type = DT_INT32, absl::string_view name = {},
            bool optimize = true);
Output Rank(Output x, absl::string_view name = {}, bool optimize = true);
Outputs ShapeN(const Outputs& xs, DataType out_type = DT_INT32, absl::string_view name = {});

// Returns the elements of x in another shape. One dimension may be -1, in which case it is
// inferred.
Output Reshape(Output x, const Ints& shape, absl::string_view name = {});
// Inserts a dimension of size 1 before `axis`; -1 appends it.
Output ExpandDims(Output x, const Ints& axis, absl::string_view name = {});
// Removes the given dimensions, which must have size 1. Without `axes`, removes all dimensions of
// size 1.
Output Squeeze(Output x, std::vector<int64_t> axes = {}, absl::string_view name = {});

// Returns x, repeated to have `shape`, as NumPy broadcasts. BroadcastDynamicShape does so for two
// shapes, which are vectors.
Output BroadcastTo(Output x, const Ints& shape, absl::string_view name = {});
Output BroadcastDynamicShape(Output s0, Output s1, absl::string_view name = {});  // BroadcastArgs
// The dimensions over which the gradients of two broadcast arguments are summed.
struct BroadcastReductions {
  Output r0, r1;  // dimensions over which the gradient of argument 0 (1) is summed
};
// Returns, for two shapes that broadcast, the dimensions to sum over.
BroadcastReductions BroadcastGradientArgs(Output s0, Output s1, absl::string_view name = {});

// ---- slicing, splitting and concatenation

// One item of NumPy's basic indexing, for StridedSlice. x[1:3, ..., newaxis, 0] is
//   StridedSlice(x, {Index::Range(1, 3), Index::Ellipsis(), Index::NewAxis(), 0})
class Index {
 public:
  // The element at this position, whose dimension is removed. A negative position counts from the
  // end.
  Index(int64_t at) : kind_(kAt), begin_(at) {}
  Index(int at) : Index(static_cast<int64_t>(at)) {}
  Index(Output at) : kind_(kAt), begin_tensor_(at) {}
  // The elements from `begin` to before `end`, `step` apart. An unset bound leaves that end open;
  // negative ones count from the end.
  static Index Range(std::optional<int64_t> begin, std::optional<int64_t> end, int64_t step = 1) {
    Index i(0);
    i.kind_ = kRange;
    i.begin_ = begin.value_or(0);
    i.end_ = end.value_or(0);
    i.has_begin_ = begin.has_value();
    i.has_end_ = end.has_value();
    i.step_ = step;
    return i;
  }
  // Takes bounds known only at run time: scalar integer tensors. An invalid Output leaves the bound
  // open.
  static Index Between(Output begin, Output end, int64_t step = 1) {
    Index i = Range(std::nullopt, std::nullopt, step);
    i.begin_tensor_ = begin;
    i.end_tensor_ = end;
    i.has_begin_ = begin.valid();
    i.has_end_ = end.valid();
    return i;
  }
  // A whole dimension; as many whole dimensions as are left, once; and a new dimension of size 1.
  static Index All() { return Range(std::nullopt, std::nullopt); }
  static Index Ellipsis() { return Special(kEllipsis); }
  static Index NewAxis() { return Special(kNewAxis); }

 private:
  friend struct IndexReader;  // array_slicing.cc
  enum Kind { kAt, kRange, kEllipsis, kNewAxis };
  static Index Special(Kind kind) {
    Index i(0);
    i.kind_ = kind;
    return i;
  }
  Kind kind_;
  int64_t begin_ = 0, end_ = 0, step_ = 1;
  bool has_begin_ = true, has_end_ = true;
  Output begin_tensor_, end_tensor_;
};
// Returns the elements that the items select, one item for each dimension; missing ones select all.
Output StridedSlice(Output x, const std::vector<Index>& indices, absl::string_view name = {});
// The masks of the op, bit i for item i, as in TensorFlow's StridedSlice.
struct StridedSliceOptions {
  // Bit i: begin[i] (end[i]) is ignored; item i is an ellipsis, a new dimension, a single position.
  int64_t begin_mask = 0, end_mask = 0, ellipsis_mask = 0, new_axis_mask = 0, shrink_axis_mask = 0;
};
// The op, with its bounds as vectors; and the gradient of its result with respect to a tensor of
// shape `shape`, zero where nothing was selected.
Output StridedSlice(Output x, Output begin, Output end, Output strides,
                    const StridedSliceOptions& options, absl::string_view name = {});
Output StridedSliceGrad(Output shape, Output begin, Output end, Output strides, Output dy,
                        const StridedSliceOptions& options, absl::string_view name = {});
// Returns `size` elements starting at `begin` in each dimension. A size of -1 selects all remaining
// elements.
Output Slice(Output x, const Ints& begin, const Ints& size, absl::string_view name = {});

// Concatenates along an existing dimension. A single tensor becomes an Identity.
Output Concat(const Outputs& xs, const Ints& axis, absl::string_view name = {});
Outputs ConcatOffset(Output axis, const Outputs& shapes, absl::string_view name = {});
// Splits into `num` equal parts (at most 2^20), or into parts of the given sizes, one of which may
// be -1. The number of sizes must be static; otherwise the builder records an error in the graph
// and returns one invalid Output.
Outputs Split(Output x, int64_t num, const Ints& axis = 0, absl::string_view name = {});
Outputs SplitV(Output x, const Ints& sizes, const Ints& axis = 0, absl::string_view name = {});
// Stack along a new dimension, and unstack along a dimension. A `num` of -1 uses the static size of
// the dimension. If that is unknown, the builder records an error in the graph and returns one
// invalid Output.
Output Stack(const Outputs& xs, int64_t axis = 0, absl::string_view name = {});
Outputs Unstack(Output x, int64_t axis = 0, int64_t num = -1, absl::string_view name = {});
Output Tile(Output x, const Ints& multiples, absl::string_view name = {});

// ---- gathering and scattering

// Options of Gather.
struct GatherOptions {
  int64_t axis = 0;        // of `params`, that the indices select from
  int64_t batch_dims = 0;  // leading dimensions that params and indices share
};
// Returns slices of `params` along an axis, one for each index. The gradient with respect to
// `params` is an IndexedSlices.
Output Gather(Output params, const Ints& indices, const GatherOptions& options = {},
              absl::string_view name = {});
Output GatherV2(Output params, Output indices, Output axis, int64_t batch_dims = 0,
                absl::string_view name = {});
// Returns the slices that the rows of the last dimension of `indices` address.
Output GatherNd(Output params, const Ints& indices, absl::string_view name = {});
// Returns a tensor of this shape that holds `updates` at `indices` and zero elsewhere. Updates with
// equal indices are added.
Output ScatterNd(const Ints& indices, Output updates, const Ints& shape,
                 absl::string_view name = {});
Output TensorScatterUpdate(Output tensor, Output indices, Output updates,
                           absl::string_view name = {});
Output TensorScatterAdd(Output tensor, Output indices, Output updates, absl::string_view name = {});
Output TensorScatterSub(Output tensor, Output indices, Output updates, absl::string_view name = {});
Output TensorScatterMin(Output tensor, Output indices, Output updates, absl::string_view name = {});
Output TensorScatterMax(Output tensor, Output indices, Output updates, absl::string_view name = {});

// Options of OneHot.
struct OneHotOptions {
  std::optional<Literal> on_value = {}, off_value = {};  // unset: 1 and 0 of any dtype
  DataType dtype = DT_FLOAT;                             // of the result, if no value says so
  int64_t axis = -1;  // where the new dimension is inserted; -1: at the end
};
// Returns on_value at the index along a new dimension of size `depth`, and off_value elsewhere; a
// row of off_values for an index out of range.
Output OneHot(Output indices, const Ints& depth, const OneHotOptions& options = {},
              absl::string_view name = {});
// Returns the coordinates of the true (nonzero) elements, one per row, in row-major order.
Output Where(Output condition, absl::string_view name = {});

// What Unique and UniqueWithCounts return: `y` are the distinct elements, `idx` the position in y
// of each element of x, and `count` how often each element of y occurs.
struct UniqueResult {
  Output y, idx, count;  // Unique leaves `count` invalid
};
// Returns the distinct elements of a vector in order of first appearance, and the position of each
// input element among them.
UniqueResult Unique(Output x, DataType out_idx = DT_INT32, absl::string_view name = {});
UniqueResult UniqueWithCounts(Output x, DataType out_idx = DT_INT32, absl::string_view name = {});
// What ListDiff returns, two vectors.
struct ListDiffResult {
  Output out, idx;  // elements; int positions
};
// Returns the elements of x that are not in y, and their positions in x.
ListDiffResult ListDiff(Output x, Output y, DataType out_idx = DT_INT32,
                        absl::string_view name = {});

// What TopK returns, both with k elements in the last dimension.
struct TopKResult {
  Output values, indices;  // indices are int32, along the last dimension
};
// Returns the k largest elements along the last dimension. Equal elements are ordered by index.
TopKResult TopK(Output x, const Ints& k, bool sorted = true, absl::string_view name = {});
// Returns whether the target's score is among the k largest of its row.
Output InTopK(Output predictions, Output targets, const Ints& k, absl::string_view name = {});

// ---- rearranging

// Permutes dimensions: dimension i of the result is dimension perm[i] of x. Without `perm` the
// order of the dimensions is reversed.
Output Transpose(Output x);
Output Transpose(Output x, const Ints& perm, absl::string_view name = {});
Output ConjugateTranspose(Output x, const Ints& perm, absl::string_view name = {});
Output InvertPermutation(Output x, absl::string_view name = {});
Output Reverse(Output x, const Ints& axes, absl::string_view name = {});
// Reverses the first lengths[b] elements along seq_dim for each index b along batch_dim.
Output ReverseSequence(Output x, Output lengths, int64_t seq_dim, int64_t batch_dim = 0,
                       absl::string_view name = {});
Output Roll(Output x, const Ints& shift, const Ints& axis, absl::string_view name = {});

// Pads x. Each row of `paddings` holds the number of elements to insert before and after a
// dimension: zeros, `value`, or a mirror image of x.
Output Pad(Output x, const Ints& paddings, absl::string_view name = {});
Output PadV2(Output x, const Ints& paddings, const TensorArg& value, absl::string_view name = {});
enum class MirrorMode { kReflect, kSymmetric };
Output MirrorPad(Output x, const Ints& paddings, MirrorMode mode, absl::string_view name = {});

// Moves blocks of `block_shape` pixels, after padding, into the batch dimension; and back, after
// which `crops` are cut off. Each row of `paddings` and `crops` is {before, after} of one
// dimension.
Output SpaceToBatchND(Output x, const Ints& block_shape, const Ints& paddings,
                      absl::string_view name = {});
Output BatchToSpaceND(Output x, const Ints& block_shape, const Ints& crops,
                      absl::string_view name = {});
// The maximum block size of SpaceToDepth and DepthToSpace, in pixels per side. The number of pixels
// in a block does not overflow.
inline constexpr int64_t kMaxDepthBlock = int64_t{1} << 20;
Output SpaceToDepth(Output x, int64_t block_size, absl::string_view data_format = "NHWC",
                    absl::string_view name = {});
Output DepthToSpace(Output x, int64_t block_size, absl::string_view data_format = "NHWC",
                    absl::string_view name = {});

// ---- diagonals

// Returns a tensor of twice the rank with `diagonal` on its diagonal; the second function is the
// inverse.
Output Diag(Output diagonal, absl::string_view name = {});
Output DiagPart(Output x, absl::string_view name = {});
struct MatrixDiagOptions {
  Ints k = 0;                                 // diagonal offset, or {lowest, highest}
  Ints num_rows = -1, num_cols = -1;          // of the matrix; -1: as small as possible
  std::optional<Literal> padding_value = {};  // unset: 0 of any dtype
  // Where short diagonals of a band are in their rows: upper, then lower ones.
  std::string align = "RIGHT_LEFT";
};
// Operate on matrices in the last two dimensions. The diagonals are in the last dimension, or in
// the last two for a band of several.
Output MatrixDiag(Output diagonal, const MatrixDiagOptions& options = {},
                  absl::string_view name = {});
Output MatrixDiagPart(Output x, const MatrixDiagOptions& options = {}, absl::string_view name = {});
Output MatrixSetDiag(Output x, Output diagonal, const MatrixDiagOptions& options = {},
                     absl::string_view name = {});
// Zeroes everything outside num_lower subdiagonals and num_upper superdiagonals (-1: keeps all).
Output MatrixBandPart(Output x, const Ints& num_lower, const Ints& num_upper,
                      absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_LIB_ARRAY_H_
