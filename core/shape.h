#ifndef WEIR_CORE_SHAPE_H_
#define WEIR_CORE_SHAPE_H_

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "weir/core/status.h"

namespace weir {

// The extents of a tensor, or what is known of them: a dimension may be unknown (-1), and so may
// the rank. The shapes of tensors are fully known; those of graph nodes need not be. A value type;
// the default is the scalar shape [].
class Shape {
 public:
  static constexpr int64_t kUnknown = -1;
  static constexpr int kMaxRank = 254;  // TensorFlow's limit

  Shape() = default;
  Shape(const Shape& other);
  Shape(Shape&& other) noexcept = default;
  Shape& operator=(const Shape& other);
  Shape& operator=(Shape&& other) noexcept = default;
  // Each dimension is an extent or -1; any other negative value is a bug in the caller. Untrusted
  // dimensions go through Make.
  Shape(std::initializer_list<int64_t> dims);
  explicit Shape(absl::Span<const int64_t> dims);
  static Shape UnknownRank();
  // For shapes from files and users: refuses ranks above kMaxRank, dimensions below -1, and an
  // element count that does not fit int64 (counting known dimensions only).
  static absl::StatusOr<Shape> Make(absl::Span<const int64_t> dims);

  bool has_rank() const { return has_rank_; }
  // -1 when unknown.
  int rank() const { return has_rank_ ? static_cast<int>(dims_.size()) : -1; }
  // The extent, or -1. `i` may count from the end (-1 is the last). Unknown rank gives -1.
  int64_t dim(int i) const {
    if (!has_rank_) return kUnknown;
    return dims_[i < 0 ? i + static_cast<int>(dims_.size()) : i];
  }
  absl::Span<const int64_t> dims() const { return dims_; }
  void set_dim(int i, int64_t extent) { dims_[i] = extent; }
  void AddDim(int64_t extent) { dims_.push_back(extent); }
  void InsertDim(int i, int64_t extent);
  void RemoveDim(int i);

  bool IsFullyDefined() const;
  bool IsScalar() const { return has_rank_ && dims_.empty(); }
  // The product of the extents; -1 when not fully defined. A product beyond int64 is INT64_MAX
  // (only shapes that did not come through Make can have one): no such tensor can be allocated.
  int64_t num_elements() const;

  // Equal as descriptions: unknown equals unknown.
  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.has_rank_ != b.has_rank_ || a.dims_.size() != b.dims_.size()) return false;
    // A loop of our own: kernels compare shapes of a few dimensions in every step, and the vectors'
    // comparison is a call of memcmp.
    const int64_t *x = a.dims_.data(), *y = b.dims_.data();
    for (size_t i = 0; i < a.dims_.size(); ++i) {
      if (x[i] != y[i]) return false;
    }
    return true;
  }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

  // True if some concrete shape fits both.
  bool IsCompatibleWith(const Shape& other) const;
  // What both together say; INVALID_ARGUMENT if they contradict each other.
  absl::StatusOr<Shape> MergeWith(const Shape& other) const;
  // Leading / trailing parts: dims [begin, end), negative counts from the end.
  Shape Sub(int begin, int end) const;
  Shape Sub(int begin) const { return Sub(begin, rank()); }
  Shape Concatenate(const Shape& tail) const;

  // "[2,?,3]", "[]", "<unknown>": the form of error messages.
  std::string ToString() const;

 private:
  absl::InlinedVector<int64_t, 5> dims_;
  bool has_rank_ = true;
};

// The NumPy broadcast of two shapes; unknown dimensions stay unknown where nothing decides them.
// INVALID_ARGUMENT "Incompatible shapes: [2,3] vs. [4]" if there is none.
absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);

}  // namespace weir

#endif  // WEIR_CORE_SHAPE_H_
