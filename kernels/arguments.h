#ifndef WEIR_KERNELS_ARGUMENTS_H_
#define WEIR_KERNELS_ARGUMENTS_H_

#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "weir/core/tensor.h"

// Reading and checking the small arguments of ops: sizes, axes, shapes, options. A graph may come
// from anywhere, so every kernel does this when it runs; errors are INVALID_ARGUMENT and name the
// argument.
namespace weir {

class Node;

using Dims = absl::InlinedVector<int64_t, 6>;

// The elements of an integer tensor of any shape.
Dims ReadInts(const Tensor& t);
// A scalar: an integer, a real number, a string.
absl::StatusOr<int64_t> ReadInt(const Tensor& t, absl::string_view argument);
absl::StatusOr<double> ReadReal(const Tensor& t, absl::string_view argument);
absl::StatusOr<std::string> ReadString(const Tensor& t, absl::string_view argument);
// The only element of a tensor of any rank, for the few arguments that TensorFlow reads so.
absl::StatusOr<int64_t> ReadOneInt(const Tensor& t, absl::string_view argument);
absl::StatusOr<std::string> ReadOneString(const Tensor& t, absl::string_view argument);
// `axis` counted from the front; an error if it is outside [-rank, rank).
absl::StatusOr<int> ReadAxis(int64_t axis, int rank);
// The shape that a vector of integers tells: no dimension negative, the number of elements within
// int64. Sizes that come from data go through one of these two before anything is allocated.
absl::StatusOr<Shape> ReadShape(const Tensor& t, absl::string_view argument);
absl::StatusOr<Shape> CheckedShape(absl::Span<const int64_t> dims);

// An attribute that TensorFlow keeps in 32 bits: INVALID_ARGUMENT if it has more.
absl::StatusOr<int> NarrowAttr(const Node& node, absl::string_view name);
// What bad_indices_policy says: whether indices that are out of range are left out, where they are
// an error else. INVALID_ARGUMENT for another policy than "", DEFAULT, ERROR and IGNORE.
absl::StatusOr<bool> IgnoresBadIndices(const Node& node);

// Where element i of a tensor of this shape is, for messages: "[0,1]", and "" in a scalar.
std::string PositionText(const Shape& shape, int64_t i);

// Errors unless the tensor has this rank ("must be a scalar", "must be a vector", "must be a
// matrix", ...), at least this rank, or this shape.
absl::Status CheckRank(const Tensor& t, int rank, absl::string_view argument);
absl::Status CheckRankAtLeast(const Tensor& t, int rank, absl::string_view argument);
absl::Status CheckShape(const Tensor& t, const Shape& want, absl::string_view argument);

}  // namespace weir

#endif  // WEIR_KERNELS_ARGUMENTS_H_
