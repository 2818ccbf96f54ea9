#ifndef WEIR_CORE_TENSOR_SLICE_H_
#define WEIR_CORE_TENSOR_SLICE_H_

#include <optional>
#include <string>
#include <vector>

#include "weir/core/tensor.h"

// Rectangles of tensors: how checkpoints hold the parts of a partitioned variable.
namespace weir {

// A range of every dimension. A value type.
struct TensorSlice {
  struct Extent {
    static constexpr int64_t kAll = -1;
    int64_t start = 0;
    int64_t length = kAll;  // kAll: the whole dimension, and then start is 0
    friend bool operator==(const Extent&, const Extent&) = default;
  };
  std::vector<Extent> extents;

  static TensorSlice Full(int rank) { return TensorSlice{std::vector<Extent>(rank)}; }
  // "3,2:-" is rows 3 and 4, all columns. INVALID_ARGUMENT for anything else.
  static absl::StatusOr<TensorSlice> Parse(absl::string_view text);
  std::string ToString() const;

  // What the slice of a tensor of shape `full` has for a shape; INVALID_ARGUMENT if it does not fit
  // in.
  absl::StatusOr<Shape> ShapeIn(const Shape& full) const;
  friend bool operator==(const TensorSlice&, const TensorSlice&) = default;
};

// A string of an op's `shape_and_slices`: "7 2 3,2:0,2" is the full shape [7,2] and a slice of it.
struct ShapeAndSlice {
  Shape shape;  // of the whole tensor
  TensorSlice slice;
  Shape slice_shape;  // of the slice

  static absl::StatusOr<ShapeAndSlice> Parse(absl::string_view text);
};

// The key that a slice of tensor `name` has in a checkpoint's index, and back (false if it is no
// such key).
std::string EncodeSliceKey(absl::string_view name, const TensorSlice& slice);
bool DecodeSliceKey(absl::string_view key, std::string* name, TensorSlice* slice);

// A slice with all its ranges resolved against a shape.
struct Box {
  std::vector<int64_t> start, size;
  int64_t num_elements() const;
};
// `slice` fits `shape`.
Box ResolveSlice(const TensorSlice& slice, const Shape& shape);
// Nothing if they have no element in common.
std::optional<Box> IntersectBoxes(const Box& a, const Box& b);
// True if no two of the boxes share an element.
bool AreDisjoint(std::vector<Box> boxes);
// Copies the elements of `part` from `from`, whose elements are those of box `from_box`, to `to`,
// which holds `to_box`. Same dtype; all boxes are of one tensor, and `part` lies in both.
void CopyBox(const Tensor& from, const Box& from_box, const Box& part, const Box& to_box,
             Tensor* to);

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_SLICE_H_
