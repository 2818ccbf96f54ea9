#ifndef WEIR_CORE_IO_TENSOR_SLICE_H_
#define WEIR_CORE_IO_TENSOR_SLICE_H_

#include <optional>
#include <string>
#include <vector>

#include "weir/core/tensor/api.h"
#include "weir/core/tensor/tensor.h"

// Rectangular slices of tensors. Checkpoints use them for partitioned variables.
namespace WEIR_API weir {

// A slice: a range for every dimension. A value type.
struct TensorSlice {
  // The range in one dimension.
  struct Extent {
    static constexpr int64_t kAll = -1;  // the length of a whole dimension
    int64_t start = 0;                   // in elements
    int64_t length = kAll;               // kAll: the whole dimension; start is 0
    friend bool operator==(const Extent&, const Extent&) = default;
  };
  std::vector<Extent> extents;  // one for each dimension of the tensor

  // The slice that is a whole tensor of this rank.
  static TensorSlice Full(int rank) { return TensorSlice{std::vector<Extent>(rank)}; }
  // Parses "3,2:-": rows 3 and 4, all columns. Returns INVALID_ARGUMENT for malformed text.
  static absl::StatusOr<TensorSlice> Parse(absl::string_view text);
  // The text that Parse reads: "3,2:-".
  std::string ToString() const;

  // Returns the shape of the slice of a tensor of shape `full`, or INVALID_ARGUMENT if the slice
  // does not fit.
  absl::StatusOr<Shape> ShapeIn(const Shape& full) const;
  friend bool operator==(const TensorSlice&, const TensorSlice&) = default;
};

// A parsed element of an op's `shape_and_slices`: "7 2 3,2:0,2" is the full shape [7,2] and a slice
// of it.
struct ShapeAndSlice {
  Shape shape;        // of the whole tensor
  TensorSlice slice;  // the part of it
  Shape slice_shape;  // of the slice

  // Parses such text. INVALID_ARGUMENT if it is malformed, or the slice does not fit the shape.
  static absl::StatusOr<ShapeAndSlice> Parse(absl::string_view text);
};

// Encodes the key of a slice of tensor `name` in a checkpoint's index, and decodes it (false if it
// is not such a key).
std::string EncodeSliceKey(absl::string_view name, const TensorSlice& slice);
bool DecodeSliceKey(absl::string_view key, std::string* name, TensorSlice* slice);

// A slice with explicit ranges in all dimensions.
struct Box {
  std::vector<int64_t> start, size;  // for each dimension, in elements
  int64_t num_elements() const;      // the product of the sizes
};
// `slice` must fit `shape`.
Box ResolveSlice(const TensorSlice& slice, const Shape& shape);
// Returns nullopt if the boxes are disjoint.
std::optional<Box> IntersectBoxes(const Box& a, const Box& b);
// Returns true if the boxes are pairwise disjoint.
bool AreDisjoint(std::vector<Box> boxes);
// Copies the elements of box `part` from `from`, which holds box `from_box`, to `to`, which holds
// `to_box`. Both tensors have the same dtype. All boxes are slices of one tensor; `part` is inside
// both of the others.
void CopyBox(const Tensor& from, const Box& from_box, const Box& part, const Box& to_box,
             Tensor* to);

}  // namespace weir

#endif  // WEIR_CORE_IO_TENSOR_SLICE_H_
