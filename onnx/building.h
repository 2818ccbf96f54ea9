#ifndef WEIR_ONNX_BUILDING_H_
#define WEIR_ONNX_BUILDING_H_

#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/ops/lib/array.h"

// Small pieces of graphs that importers share. As builders do, they record errors in the graph.
namespace weir::onnx {

// Returns an axis in [0, rank). INVALID_ARGUMENT for one that is not in [-rank, rank).
absl::StatusOr<int> ResolveAxis(int64_t axis, int rank);
absl::StatusOr<std::vector<int64_t>> ResolveAxes(std::vector<int64_t> axes, int rank);

// Adds a scalar constant with the dtype of `like`. INVALID_ARGUMENT if the dtype lacks the number.
Output ScalarLike(const Output& like, double value);

// Returns the shape of x as a vector of int64, and one element of that as a scalar.
Output ShapeOf(const Output& x);
Output DimOf(const Output& x, int axis);

// Returns indices into a dimension of this size without negative ones, which count from the end.
Output PositiveIndices(const Output& indices, const Output& size);

// Swaps two axes of a tensor of known rank.
Output SwapAxes(const Output& x, int a, int b);

// Reshapes a vector so that it broadcasts along one axis of a tensor of this rank: [1, n, 1, 1].
Output AlongAxis(const Output& vector, int axis, int rank);

// Adds what is known of the shape of x to its static shape, and returns x.
Output WithShape(const Output& x, const Shape& shape);
// Gives x a static rank, which the step checks.
Output WithRank(const Output& x, int rank);

}  // namespace weir::onnx

#endif  // WEIR_ONNX_BUILDING_H_
