#ifndef WEIR_KERNELS_LIB_ARGUMENTS_H_
#define WEIR_KERNELS_LIB_ARGUMENTS_H_

#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "weir/core/tensor/tensor.h"

// Reads and validates the small arguments of ops: sizes, axes, shapes, options. Graphs are
// untrusted, so every kernel validates its arguments at run time. Errors are INVALID_ARGUMENT and
// name the argument.
namespace weir {

class Node;

using Dims = absl::InlinedVector<int64_t, 6>;

// Returns the elements of an integer tensor of any shape.
Dims ReadInts(const Tensor& t);
// Returns a scalar: an integer, a floating-point number or a string.
absl::StatusOr<int64_t> ReadInt(const Tensor& t, absl::string_view argument);
absl::StatusOr<double> ReadReal(const Tensor& t, absl::string_view argument);
absl::StatusOr<std::string> ReadString(const Tensor& t, absl::string_view argument);
// Returns the only element of a tensor of any rank. For the few arguments that TensorFlow reads
// this way.
absl::StatusOr<int64_t> ReadOneInt(const Tensor& t, absl::string_view argument);
absl::StatusOr<std::string> ReadOneString(const Tensor& t, absl::string_view argument);
// Returns `axis` counted from the front, or an error if it is outside [-rank, rank).
absl::StatusOr<int> ReadAxis(int64_t axis, int rank);
// Returns the shape that an integer vector holds. Errors if a dimension is negative or the number
// of elements overflows int64. Sizes that come from data must pass one of these two functions
// before anything is allocated.
absl::StatusOr<Shape> ReadShape(const Tensor& t, absl::string_view argument);
absl::StatusOr<Shape> CheckedShape(absl::Span<const int64_t> dims);

// Returns an attribute that TensorFlow stores in 32 bits. INVALID_ARGUMENT if the value does not
// fit.
absl::StatusOr<int> NarrowAttr(const Node& node, absl::string_view name);
// Returns whether the bad_indices_policy attribute makes the op ignore out-of-range indices;
// otherwise they are an error. INVALID_ARGUMENT for a policy other than "", DEFAULT, ERROR and
// IGNORE.
absl::StatusOr<bool> IgnoresBadIndices(const Node& node);

// Returns the index of flat element i in a tensor of this shape, for messages: "[0,1]", or "" for a
// scalar.
std::string PositionText(const Shape& shape, int64_t i);

// Return an error unless the tensor has the given rank ("must be a scalar", "must be a vector",
// "must be a matrix", ...), at least the given rank, or the given shape.
absl::Status CheckRank(const Tensor& t, int rank, absl::string_view argument);
absl::Status CheckRankAtLeast(const Tensor& t, int rank, absl::string_view argument);
absl::Status CheckShape(const Tensor& t, const Shape& want, absl::string_view argument);

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_ARGUMENTS_H_
