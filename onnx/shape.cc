#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "weir/core/graph/shape_context.h"
#include "weir/onnx/building.h"
#include "weir/onnx/importers.h"
#include "weir/ops/lib/math.h"

// Constants, shapes, and other shapes for the same elements.
namespace weir::onnx {

namespace {

// ---- constants

absl::Status ImportConstant(NodeContext& c) {
  if (c.HasAttr("value")) {
    WEIR_ASSIGN_OR_RETURN(Tensor value, c.TensorAttr("value"));
    return c.Return(Const(c.graph(), std::move(value)));
  }
  if (c.HasAttr("value_float")) return c.Return(Const<float>(c.graph(), c.Float("value_float", 0)));
  if (c.HasAttr("value_int")) return c.Return(Const<int64_t>(c.graph(), c.Int("value_int", 0)));
  if (c.HasAttr("value_string"))
    return c.Return(Const(c.graph(), Tensor::Scalar(c.String("value_string", ""))));
  if (c.HasAttr("value_floats")) return c.Return(Const<float>(c.graph(), c.Floats("value_floats")));
  if (c.HasAttr("value_ints")) return c.Return(Const<int64_t>(c.graph(), c.Ints("value_ints")));
  if (c.HasAttr("value_strings"))
    return c.Return(Const<std::string>(c.graph(), c.Strings("value_strings")));
  return Unimplemented("the constant has no value that Weir supports, such as a sparse one");
}

absl::Status ImportConstantOfShape(NodeContext& c) {
  Tensor value = Tensor::Scalar(0.0f);
  if (c.HasAttr("value")) {
    WEIR_ASSIGN_OR_RETURN(value, c.TensorAttr("value"));
    if (value.num_elements() != 1)
      return InvalidArgument("value has ", value.num_elements(), " elements; expected 1");
  }
  return c.Return(Fill(c.in(0), Const(c.graph(), value.Reshaped(Shape()))));
}

absl::Status ImportIdentity(NodeContext& c) {
  if (!c.value(0).is_tensor()) return c.ReturnValues({c.value(0)});
  return c.Return(Identity(c.in(0)));
}

// Ones where column - row == k.
absl::Status ImportEyeLike(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const DataType dtype, c.Type("dtype", c.dtype(0)));
  const Output x = c.in(0), one = Const<int64_t>(c.graph(), 1), zero = Const<int64_t>(c.graph(), 0);
  const Output row = ExpandDims(Range(zero, DimOf(x, 0), one), 1);
  const Output column = ExpandDims(Range(zero, DimOf(x, 1), one), 0);
  const Output k = Const<int64_t>(c.graph(), c.Int("k", 0));
  return c.Return(Cast(Equal(Subtract(column, row), k), dtype));
}

absl::Status ImportRange(NodeContext& c) {
  c.Ignore("stash_type");
  return c.Return(Range(c.Scalar(0), c.Scalar(1), c.Scalar(2)));
}

// ---- shapes as values

absl::Status ImportShape(NodeContext& c) {
  const Output shape = ShapeOf(c.in(0));
  if (!c.HasAttr("start") && !c.HasAttr("end")) return c.Return(shape);
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  const auto clamped = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t begin = clamped(c.Int("start", 0)), end = clamped(c.Int("end", rank));
  return c.Return(StridedSlice(shape, {Index::Range(begin, std::max(begin, end))}));
}

absl::Status ImportSize(NodeContext& c) { return c.Return(Size(c.in(0), DT_INT64)); }

// ---- reshapes

// The dimensions of a new shape that are known, -1 for others, also where 0 copies a dimension.
Shape KnownShape(const Output& x, const std::vector<int64_t>& given, bool copies_zeros) {
  Shape shape(std::vector<int64_t>(given.size(), Shape::kUnknown));
  for (size_t i = 0; i < given.size(); ++i) {
    const int at = static_cast<int>(i);
    if (given[i] > 0 || (given[i] == 0 && !copies_zeros)) shape.set_dim(at, given[i]);
    if (given[i] == 0 && copies_zeros && at < x.shape().rank()) shape.set_dim(at, x.dim(at));
  }
  return shape;
}

// Replaces the zeros of a new shape by the dimensions of x.
Output CopyZeros(const Output& x, const Output& shape, int rank, int new_rank) {
  const int common = std::min(rank, new_rank);
  const Output old = StridedSlice(ShapeOf(x), {Index::Range(0, common)});
  const Output padded = Pad(old, {{0, new_rank - common}});
  return SelectV2(Equal(shape, ScalarLike(shape, 0)), padded, shape);
}

absl::Status ImportReshape(NodeContext& c) {
  const Output x = c.in(0), shape = c.in(1);
  const bool copies_zeros = c.Int("allowzero", 0) == 0;
  const std::optional<std::vector<int64_t>> constant = c.ConstantInts(1);
  const bool has_zero = constant && absl::c_linear_search(*constant, 0);
  if (constant && !(has_zero && copies_zeros)) return c.Return(Reshape(x, *constant));
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  if (constant) {
    const Shape known = KnownShape(x, *constant, true);
    std::vector<int64_t> dims = *constant;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] != 0) continue;
      if (static_cast<int>(i) >= rank)
        return InvalidArgument("element ", i, " of the shape is 0, and the input has ", rank,
                               " dimensions");
      dims[i] = known.dim(static_cast<int>(i));
    }
    const bool is_static = absl::c_count(dims, -1) <= 1;
    return c.Return(is_static
                        ? Reshape(x, dims)
                        : WithShape(Reshape(x, CopyZeros(x, shape, rank, dims.size())), known));
  }
  if (!copies_zeros) return c.Return(Reshape(x, shape));
  if (c.shape(1).rank() != 1 || c.shape(1).dim(0) < 0)
    return Unimplemented("the rank of the new shape is not known while the graph is built");
  const int new_rank = static_cast<int>(c.shape(1).dim(0));
  const Output is_zero = Equal(shape, ScalarLike(shape, 0));
  if (!is_zero.valid()) return absl::OkStatus();  // the graph has the error
  Shape known = GraphValues().value_as_shape(*is_zero.node, 0);
  for (int i = 0; i < known.rank(); ++i) {
    if (known.dim(i) == 0) known.set_dim(i, i < rank ? x.dim(i) : Shape::kUnknown);
  }
  const Output y = Reshape(x, CopyZeros(x, shape, rank, new_rank));
  return c.Return(known.rank() == new_rank && known.num_elements() != 0 ? WithShape(y, known)
                                                                        : WithRank(y, new_rank));
}

// The product of the dimensions [begin, end); -1 if one is unknown.
int64_t StaticSize(const Shape& shape, int begin, int end) {
  return shape.Sub(begin, end).num_elements();
}

absl::Status ImportFlatten(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  const int64_t given = c.Int("axis", 1);
  if (given < -rank || given > rank)
    return InvalidArgument("axis ", given, " is out of range for an input of rank ", rank);
  const int axis = static_cast<int>(given < 0 ? given + rank : given);
  const Output x = c.in(0);
  const int64_t outer = StaticSize(x.shape(), 0, axis), inner = StaticSize(x.shape(), axis, rank);
  if (outer >= 0 && inner >= 0) return c.Return(Reshape(x, {outer, inner}));
  if (outer > 0) return c.Return(Reshape(x, {outer, -1}));
  if (inner > 0) return c.Return(Reshape(x, {-1, inner}));
  const Output shape = ShapeOf(x);
  const Output rows = ReduceProd(StridedSlice(shape, {Index::Range(0, axis)}), 0);
  const Output columns = ReduceProd(StridedSlice(shape, {Index::Range(axis, rank)}), 0);
  return c.Return(Reshape(x, Stack({rows, columns})));
}

// The axes of Squeeze and Unsqueeze: an attribute, and from version 13 an input.
struct GivenAxes {
  bool is_given = false;
  std::optional<std::vector<int64_t>> constant;  // unset: only the input knows them
  int count = 0;
};

absl::StatusOr<GivenAxes> AxesOf(NodeContext& c) {
  GivenAxes axes;
  if (c.version() < 13) {
    axes.is_given = c.HasAttr("axes");
    axes.constant = c.Ints("axes");
  } else if (c.has(1)) {
    axes.is_given = true;
    axes.constant = c.ConstantInts(1);
    if (!axes.constant && !c.shape(1).IsFullyDefined())
      return Unimplemented("the number of axes is not known while the graph is built");
    axes.count = static_cast<int>(c.shape(1).num_elements());
  }
  if (axes.constant) axes.count = static_cast<int>(axes.constant->size());
  return axes;
}

// Ones at the axes of a shape with `rank` dimensions, and zeros elsewhere.
Output AxesMask(const Output& axes, int rank) {
  const Output size = Const<int64_t>(axes.graph(), rank);
  const Output positive = Reshape(PositiveIndices(axes, Cast(size, axes.dtype())), {-1});
  return ReduceSum(OneHot(positive, rank, {.dtype = DT_INT64}), 0);
}

absl::Status ImportSqueeze(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  WEIR_ASSIGN_OR_RETURN(const GivenAxes axes, AxesOf(c));
  const Output x = c.in(0);
  if (!axes.is_given && !x.shape().IsFullyDefined())
    return Unimplemented("without axes, the input's shape must be known while the graph is built");
  if (!axes.is_given) return c.Return(Squeeze(x));
  if (axes.constant) {
    WEIR_ASSIGN_OR_RETURN(const std::vector<int64_t> resolved, ResolveAxes(*axes.constant, rank));
    return c.Return(resolved.empty() ? Identity(x) : Squeeze(x, resolved));
  }
  const Output kept = Equal(AxesMask(c.in(1), rank), Const<int64_t>(c.graph(), 0));
  const Output positions = Reshape(Where(kept), {-1});
  return c.Return(
      WithRank(Reshape(x, Gather(ShapeOf(x), positions)), std::max(0, rank - axes.count)));
}

absl::Status ImportUnsqueeze(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  WEIR_ASSIGN_OR_RETURN(const GivenAxes axes, AxesOf(c));
  const int new_rank = rank + axes.count;
  if (new_rank > Shape::kMaxRank)
    return InvalidArgument("the result would have ", new_rank, " dimensions");
  Output x = c.in(0);
  if (axes.constant) {
    WEIR_ASSIGN_OR_RETURN(std::vector<int64_t> sorted, ResolveAxes(*axes.constant, new_rank));
    absl::c_sort(sorted);
    for (const int64_t axis : sorted) x = ExpandDims(x, axis);
    return c.Return(axes.count == 0 ? Identity(x) : x);
  }
  // The dimensions of x go, in order, to the places that are not axes.
  const Output is_old = Subtract(Const<int64_t>(c.graph(), 1), AxesMask(c.in(1), new_rank));
  const Output source = Cumsum(is_old, 0, {.exclusive = true});
  const Output padded = Concat({ShapeOf(x), Const<int64_t>(c.graph(), {1})}, 0);
  const Output one = Const<int64_t>(c.graph(), 1);
  const Output shape = SelectV2(Equal(is_old, one), Gather(padded, source), OnesLike(is_old));
  return c.Return(WithRank(Reshape(x, shape), new_rank));
}

absl::Status ImportTranspose(NodeContext& c) {
  const std::vector<int64_t> perm = c.Ints("perm");
  if (perm.empty()) return c.Return(Transpose(c.in(0)));
  return c.Return(Transpose(c.in(0), perm));
}

// The argument is broadcast too: a dimension of 1 in the new shape keeps that of the input.
absl::Status ImportExpand(NodeContext& c) {
  const Output x = c.in(0);
  const std::optional<std::vector<int64_t>> constant = c.ConstantInts(1);
  if (constant && x.shape().IsFullyDefined()) {
    WEIR_ASSIGN_OR_RETURN(const Shape given, Shape::Make(*constant));
    WEIR_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(x.shape(), given));
    return c.Return(BroadcastTo(x, shape));
  }
  const Output y = BroadcastTo(x, BroadcastDynamicShape(ShapeOf(x), Cast(c.in(1), DT_INT64)));
  const int64_t length = c.shape(1).has_rank() ? c.shape(1).num_elements() : -1;
  if (length < 0 || !x.shape().has_rank()) return c.Return(y);
  return c.Return(WithRank(y, std::max(x.shape().rank(), static_cast<int>(length))));
}

constexpr Importer kImporters[] = {
    {"Constant", 7, 0, 0, ImportConstant},   {"ConstantOfShape", 9, 1, 1, ImportConstantOfShape},
    {"Expand", 8, 2, 2, ImportExpand},       {"EyeLike", 9, 1, 1, ImportEyeLike},
    {"Flatten", 7, 1, 1, ImportFlatten},     {"Identity", 7, 1, 1, ImportIdentity},
    {"Range", 11, 3, 3, ImportRange},        {"Reshape", 7, 2, 2, ImportReshape},
    {"Shape", 7, 1, 1, ImportShape},         {"Size", 7, 1, 1, ImportSize},
    {"Squeeze", 7, 1, 2, ImportSqueeze},     {"Transpose", 7, 1, 1, ImportTranspose},
    {"Unsqueeze", 7, 1, 2, ImportUnsqueeze},
};

}  // namespace

absl::Span<const Importer> ShapeImporters() { return kImporters; }

}  // namespace weir::onnx
