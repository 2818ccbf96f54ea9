#include "weir/onnx/building.h"

#include <numeric>
#include <utility>

#include "weir/ops/lib/math.h"

namespace weir::onnx {

absl::StatusOr<int> ResolveAxis(int64_t axis, int rank) {
  if (axis >= -rank && axis < rank) return static_cast<int>(axis < 0 ? axis + rank : axis);
  return InvalidArgument("axis ", axis, " is out of range [", -rank, ", ", rank, ")");
}

absl::StatusOr<std::vector<int64_t>> ResolveAxes(std::vector<int64_t> axes, int rank) {
  for (int64_t& axis : axes) {
    WEIR_ASSIGN_OR_RETURN(axis, ResolveAxis(axis, rank));
  }
  return axes;
}

Output ScalarLike(const Output& like, double value) {
  if (!like.valid()) return Output();
  absl::StatusOr<Tensor> scalar = ScalarTensor(like.dtype(), value);
  if (scalar.ok()) return Const(like.graph(), *std::move(scalar));
  like.graph().Fail(scalar.status());
  return Output();
}

Output ShapeOf(const Output& x) { return ShapeTensor(x, DT_INT64); }

Output DimOf(const Output& x, int axis) {
  if (x.valid() && x.shape().has_rank() && x.dim(axis) >= 0)
    return Const<int64_t>(x.graph(), x.dim(axis));
  return StridedSlice(ShapeOf(x), {Index(axis)});
}

Output PositiveIndices(const Output& indices, const Output& size) {
  const Output zero = ScalarLike(indices, 0);
  const Output wrapped = Add(indices, Cast(size, indices.dtype()));
  return SelectV2(Less(indices, zero), wrapped, indices);
}

Output SwapAxes(const Output& x, int a, int b) {
  if (a == b || !x.valid()) return x;
  std::vector<int64_t> perm(x.shape().rank());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[a], perm[b]);
  return Transpose(x, perm);
}

Output AlongAxis(const Output& vector, int axis, int rank) {
  std::vector<int64_t> dims(rank, 1);
  dims[axis] = -1;
  return Reshape(vector, dims);
}

Output WithShape(const Output& x, const Shape& shape) {
  if (!x.valid()) return x;
  const absl::Status status = x.graph().RefineShape(x, shape);
  if (status.ok()) return x;
  x.graph().Fail(status);
  return Output();
}

Output WithRank(const Output& x, int rank) {
  if (!x.valid() || x.shape().rank() == rank) return x;
  return EnsureShape(x, Shape(std::vector<int64_t>(rank, Shape::kUnknown)));
}

}  // namespace weir::onnx
