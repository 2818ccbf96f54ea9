#ifndef WEIR_CORE_TENSOR_SHAPE_H_
#define WEIR_CORE_TENSOR_SHAPE_H_

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "weir/core/tensor/api.h"
#include "weir/core/tensor/status.h"

namespace WEIR_API weir {

// The shape of a tensor, possibly partial: a dimension may be unknown (-1), and so may the rank.
// Shapes of tensors are fully defined; shapes of graph nodes need not be. A value type; the default
// is the scalar shape [].
class Shape {
 public:
  static constexpr int64_t kUnknown = -1;  // an extent that is not known
  static constexpr int kMaxRank = 254;     // TensorFlow's limit

  Shape() = default;
  Shape(const Shape& other);
  Shape(Shape&& other) noexcept = default;
  Shape& operator=(const Shape& other);
  Shape& operator=(Shape&& other) noexcept = default;
  // Each dimension is an extent or -1; any other negative value is a bug in the caller. Use Make
  // for untrusted dimensions.
  Shape(std::initializer_list<int64_t> dims);
  explicit Shape(absl::Span<const int64_t> dims);
  // The shape of which nothing is known.
  static Shape UnknownRank();
  // For shapes from files and users. Returns an error for ranks above kMaxRank, dimensions below
  // -1, and element counts that overflow int64 (counting known dimensions only).
  static absl::StatusOr<Shape> Make(absl::Span<const int64_t> dims);

  bool has_rank() const { return has_rank_; }  // false: nothing is known
  // -1 if unknown.
  int rank() const { return has_rank_ ? static_cast<int>(dims_.size()) : -1; }
  // Returns the extent of dimension i, or -1 if the dimension or the rank is unknown. A negative
  // `i` counts from the end (-1 is the last).
  int64_t dim(int i) const {
    if (!has_rank_) return kUnknown;
    return dims_[i < 0 ? i + static_cast<int>(dims_.size()) : i];
  }
  // The extents; empty for unknown rank.
  absl::Span<const int64_t> dims() const { return dims_; }
  // Change the dimensions. The rank is known, and `i` is in [0, rank), for InsertDim in [0, rank].
  void set_dim(int i, int64_t extent) { dims_[i] = extent; }
  void AddDim(int64_t extent) { dims_.push_back(extent); }
  void InsertDim(int i, int64_t extent);
  void RemoveDim(int i);

  // Whether rank and all extents are known; whether the rank is 0.
  bool IsFullyDefined() const;
  bool IsScalar() const { return has_rank_ && dims_.empty(); }
  // Returns the product of the extents, or -1 if the shape is not fully defined. Returns INT64_MAX
  // on overflow (only possible for shapes that did not come from Make): no such tensor can be
  // allocated.
  int64_t num_elements() const;

  // Equality of descriptions: unknown equals unknown.
  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.has_rank_ != b.has_rank_ || a.dims_.size() != b.dims_.size()) return false;
    // A hand-written loop: kernels compare shapes of a few dimensions in every step, and the
    // vectors' comparison calls memcmp.
    const int64_t *x = a.dims_.data(), *y = b.dims_.data();
    for (size_t i = 0; i < a.dims_.size(); ++i) {
      if (x[i] != y[i]) return false;
    }
    return true;
  }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

  // Returns true if some fully defined shape is compatible with both.
  bool IsCompatibleWith(const Shape& other) const;
  // Combines the information of both shapes. Returns INVALID_ARGUMENT if they contradict each
  // other.
  absl::StatusOr<Shape> MergeWith(const Shape& other) const;
  // Returns the dimensions [begin, end); negative indices count from the end.
  Shape Sub(int begin, int end) const;
  Shape Sub(int begin) const { return Sub(begin, rank()); }
  // Returns the dimensions of this shape, and then those of `tail`; unknown rank if one has it.
  Shape Concatenate(const Shape& tail) const;

  // Returns "[2,?,3]", "[]", "<unknown>": the form used in error messages.
  std::string ToString() const;

 private:
  absl::InlinedVector<int64_t, 5> dims_;
  bool has_rank_ = true;
};

// Returns the NumPy broadcast of two shapes; dimensions that cannot be determined are unknown.
// Returns INVALID_ARGUMENT "Incompatible shapes: [2,3] vs. [4]" if the shapes are not
// broadcastable.
absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_SHAPE_H_
