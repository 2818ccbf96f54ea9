#include "weir/ops/lib/math_internal.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/math.h"

namespace weir {

Output ScalarConst(const Output& like, const Literal& value) {
  return ConstLike(like, value, "Const");
}
Output ZerosOf(const Output& x) { return ZerosLike(x); }
Output OnesOf(const Output& x) { return OnesLike(x); }
Output ShapeVector(const Output& x) { return ShapeTensor(x, DT_INT32, "Shape"); }

Output Unary(absl::string_view op, Output x, absl::string_view name) {
  return AddOp(op, {x}, {}, name);
}

Output Binary(absl::string_view op, const TensorArg& x, const TensorArg& y, absl::string_view name,
              const char* x_name, const char* y_name, Attrs attrs) {
  if (!x.is_literal() && !y.is_literal()) return AddOp(op, {x.output(), y.output()}, attrs, name);
  const Output& tensor = x.is_literal() ? y.output() : x.output();
  if (!tensor.valid()) return {};
  Graph& g = tensor.graph();
  NameScope scope(g, name.empty() ? op : name);
  const Output a = x.is_literal() ? x.In(g, tensor.dtype(), x_name) : tensor;
  const Output b = y.is_literal() ? y.In(g, tensor.dtype(), y_name) : tensor;
  return AddOp(op, {a, b}, attrs, scope.name());
}

namespace internal {

void ReadHere(const Output& first) {
  if (first.valid()) first.graph().NameHere(first);
}

}  // namespace internal

// Gradients of a broadcasting op have the shape of its result. Each is summed over the dimensions
// along which its input was broadcast, and reshaped to the input's shape. If the static shapes
// determine these dimensions, they are constants, and an input that was not broadcast costs
// nothing; otherwise BroadcastGradientArgs computes them at run time. If one of two dimensions is
// 1, the other is assumed to broadcast even if it is unknown: if it is 1 too, the sum is over one
// element.

namespace {

using Dims = std::vector<int64_t>;

// Returns the dimensions of the result along which x is broadcast, and those along which y is.
// Returns nullopt if they are known only at run time.
std::optional<std::pair<Dims, Dims>> RepeatedDims(const Shape& x, const Shape& y) {
  if (!x.has_rank() || !y.has_rank()) return std::nullopt;
  const int rank = std::max(x.rank(), y.rank());
  const auto dim = [rank](const Shape& s, int i) {
    const int skip = rank - s.rank();
    return i < skip ? 1 : s.dim(i - skip);
  };
  std::pair<Dims, Dims> dims;
  for (int i = 0; i < rank; ++i) {
    const int64_t dx = dim(x, i), dy = dim(y, i);
    if (dx == 1 && dy != 1) {
      dims.first.push_back(i);
    } else if (dy == 1 && dx != 1) {
      dims.second.push_back(i);
    } else if (dx < 0 || dy < 0) {
      return std::nullopt;
    }
  }
  return dims;
}

Output SumToStatic(Output gradient, const Dims& dims, bool same_rank, Output shape) {
  if (dims.empty() && same_rank) return gradient;
  return Reshape(ReduceSum(gradient, Ints(dims), /*keep_dims=*/true), shape);
}

}  // namespace

bool StaticAndEqual(const Shape& a, const Shape& b) {
  return a.IsFullyDefined() && b.IsFullyDefined() && a == b;
}

Grads ReduceGradientArgs(GradContext& g, Output gx, Output gy, bool shortcut) {
  const Output x = g.x(0), y = g.x(1);
  const bool equal = StaticAndEqual(x.shape(), y.shape());
  if (equal && shortcut) return {gx, gy};
  const Output sx = ShapeVector(x), sy = ShapeVector(y);
  if (equal) return {gx, gy};
  if (const auto dims = RepeatedDims(x.shape(), y.shape())) {
    const int rank_x = x.shape().rank(), rank_y = y.shape().rank();
    const Output to_x = SumToStatic(gx, dims->first, rank_x >= rank_y, sx);
    return {to_x, SumToStatic(gy, dims->second, rank_y >= rank_x, sy)};
  }
  const BroadcastReductions axes = BroadcastGradientArgs(sx, sy);
  const Output to_x = Reshape(ReduceSum(gx, axes.r0, /*keep_dims=*/true), sx);
  return {to_x, Reshape(ReduceSum(gy, axes.r1, /*keep_dims=*/true), sy)};
}

BroadcastAxes AxesOfBroadcast(const Output& x, const Output& y) {
  const Output sx = ShapeVector(x), sy = ShapeVector(y);
  const BroadcastReductions axes = BroadcastGradientArgs(sx, sy);
  return {sx, sy, axes.r0, axes.r1};
}

Output SumTo(Output gradient, Output axes, Output shape) {
  return Reshape(ReduceSum(gradient, axes), shape);
}

}  // namespace weir
