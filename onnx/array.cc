#include <algorithm>
#include <numeric>
#include <utility>

#include "weir/onnx/building.h"
#include "weir/onnx/importers.h"
#include "weir/ops/lib/math.h"

// Parts of tensors, tensors of parts, and elements in another order.
namespace weir::onnx {

namespace {

absl::Status ImportConcat(NodeContext& c) {
  return c.Return(Concat(c.tensors(), c.Int("axis", 0)));
}

// ---- Split

// Returns the sizes of `count` parts of which all but the last are equal.
absl::StatusOr<weir::Ints> EqualParts(NodeContext& c, int axis, int count) {
  const int64_t size = c.shape(0).dim(axis);
  if (size < 0) {
    const Output parts = Const<int64_t>(c.graph(), count);
    const Output size = DimOf(c.in(0), axis);
    const Output sum = Add(size, Const<int64_t>(c.graph(), count - 1));
    const Output part = FloorDiv(sum, parts);
    const Output before = Multiply(part, Const<int64_t>(c.graph(), count - 1));
    Outputs sizes(count - 1, part);
    sizes.push_back(Subtract(size, before));
    return weir::Ints(Stack(sizes));
  }
  const int64_t part = (size + count - 1) / count;
  std::vector<int64_t> sizes(count, part);
  sizes.back() = size - part * (count - 1);
  if (sizes.back() < 0)
    return InvalidArgument("dimension ", axis, " of size ", size, " cannot be split into ", count,
                           " parts");
  return weir::Ints(sizes);
}

absl::Status ImportSplit(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  WEIR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c.Int("axis", 0), rank));
  const int count = c.num_outputs();
  if (count == 0) return InvalidArgument("it has no outputs");
  if (const int64_t declared = c.Int("num_outputs", count); declared != count)
    return InvalidArgument("num_outputs is ", declared, ", and the node has ", count, " outputs");
  weir::Ints sizes;
  if (c.version() < 13 && c.HasAttr("split")) {
    sizes = weir::Ints(c.Ints("split"));
  } else if (c.version() >= 13 && c.has(1)) {
    const std::optional<std::vector<int64_t>> constant = c.ConstantInts(1);
    sizes = constant ? weir::Ints(*constant) : weir::Ints(c.in(1));
  } else {
    WEIR_ASSIGN_OR_RETURN(sizes, EqualParts(c, axis, count));
  }
  return c.Return(SplitV(c.in(0), sizes, axis));
}

// ---- Slice

// The arguments of Slice: attributes before version 10. Invalid ones are not given.
struct SliceArguments {
  Output starts, ends, axes, steps;
};

SliceArguments SliceArgumentsOf(NodeContext& c) {
  if (c.version() >= 10) return {c.in(1), c.in(2), c.in(3), c.in(4)};
  SliceArguments s;
  s.starts = Const<int64_t>(c.graph(), c.Ints("starts"));
  s.ends = Const<int64_t>(c.graph(), c.Ints("ends"));
  if (c.HasAttr("axes")) s.axes = Const<int64_t>(c.graph(), c.Ints("axes"));
  return s;
}

std::optional<std::vector<int64_t>> IntsOf(const Output& tensor) {
  const std::optional<Tensor> value = ConstantOf(tensor);
  if (!value || !IsInteger(value->dtype())) return std::nullopt;
  std::vector<int64_t> out(value->num_elements());
  for (size_t i = 0; i < out.size(); ++i) out[i] = value->IntAt(static_cast<int64_t>(i));
  return out;
}

// A slice whose axes and steps are constants: bounds may be tensors.
absl::StatusOr<Output> SliceKnownAxes(const Output& x, const SliceArguments& s, int rank,
                                      const std::vector<int64_t>& axes,
                                      const std::vector<int64_t>& steps) {
  const std::optional<std::vector<int64_t>> starts = IntsOf(s.starts), ends = IntsOf(s.ends);
  std::vector<Index> indices(rank, Index::All());
  for (size_t i = 0; i < axes.size(); ++i) {
    WEIR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(axes[i], rank));
    if (steps[i] == 0) return InvalidArgument("step ", i, " is 0");
    if (starts && ends) {
      if (i >= starts->size() || i >= ends->size())
        return InvalidArgument("there are fewer starts or ends than axes");
      indices[axis] = Index::Range((*starts)[i], (*ends)[i], steps[i]);
    } else {
      const Index at(static_cast<int64_t>(i));
      indices[axis] = Index::Between(StridedSlice(Cast(s.starts, DT_INT64), {at}),
                                     StridedSlice(Cast(s.ends, DT_INT64), {at}), steps[i]);
    }
  }
  return StridedSlice(x, indices);
}

// A slice of which nothing is constant: the bounds go to their axes, and others are whole.
Output SliceUnknownAxes(const Output& x, const SliceArguments& s, int rank) {
  Graph& graph = x.graph();
  const auto wide = [](const Output& values) { return Reshape(Cast(values, DT_INT64), {-1}); };
  std::vector<int64_t> first(rank);
  std::iota(first.begin(), first.end(), 0);
  const Output size = Const<int64_t>(graph, rank);
  const Output axes = s.axes.valid()
                          ? PositiveIndices(wide(s.axes), size)
                          : Range(Const<int64_t>(graph, 0), weir::Size(s.starts, DT_INT64),
                                  Const<int64_t>(graph, 1));
  const Output at = ExpandDims(axes, 1);
  const Output ones = Const<int64_t>(graph, std::vector<int64_t>(rank, 1));
  const Output zeros = Const<int64_t>(graph, std::vector<int64_t>(rank, 0));
  const Output begin = TensorScatterUpdate(zeros, at, wide(s.starts));
  const Output end = TensorScatterUpdate(ShapeOf(x), at, wide(s.ends));
  const Output steps = s.steps.valid() ? TensorScatterUpdate(ones, at, wide(s.steps)) : ones;
  return WithRank(StridedSlice(x, begin, end, steps, StridedSliceOptions()), rank);
}

absl::Status ImportSlice(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  const SliceArguments s = SliceArgumentsOf(c);
  if (!s.starts.valid() || !s.ends.valid()) return InvalidArgument("starts or ends are missing");
  std::optional<std::vector<int64_t>> axes = IntsOf(s.axes), steps = IntsOf(s.steps);
  if (!s.axes.valid() && s.starts.shape().rank() == 1 && s.starts.dim(0) >= 0) {
    if (s.starts.dim(0) > rank) return InvalidArgument("there are more starts than dimensions");
    axes = std::vector<int64_t>(s.starts.dim(0));
    std::iota(axes->begin(), axes->end(), 0);
  }
  if (!s.steps.valid() && axes) steps = std::vector<int64_t>(axes->size(), 1);
  if (!axes || !steps || axes->size() != steps->size()) {
    return c.Return(SliceUnknownAxes(c.in(0), s, rank));
  }
  WEIR_ASSIGN_OR_RETURN(const Output y, SliceKnownAxes(c.in(0), s, rank, *axes, *steps));
  return c.Return(y);
}

// ---- elements in another order

absl::Status ImportTile(NodeContext& c) {
  const std::optional<std::vector<int64_t>> repeats = c.ConstantInts(1);
  return c.Return(Tile(c.in(0), repeats ? weir::Ints(*repeats) : weir::Ints(c.in(1))));
}

absl::Status ImportTrilu(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  if (rank < 2) return InvalidArgument("the input has rank ", rank, "; expected 2 or more");
  const Output x = c.in(0);
  const Output zero = Const<int64_t>(c.graph(), 0), one = Const<int64_t>(c.graph(), 1);
  const Output k = c.has(1) ? c.Scalar(1) : zero;
  const Output row = ExpandDims(Range(zero, DimOf(x, rank - 2), one), 1);
  const Output column = ExpandDims(Range(zero, DimOf(x, rank - 1), one), 0);
  const Output diagonal = Subtract(column, row);
  const Output kept = c.Int("upper", 1) != 0 ? GreaterEqual(diagonal, k) : LessEqual(diagonal, k);
  return c.Return(SelectV2(kept, x, ScalarLike(x, 0)));
}

absl::Status ImportDepthToSpace(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  const int64_t block = c.Int("blocksize", 0);
  if (rank != 4 || block < 1 || block > kMaxDepthBlock)
    return InvalidArgument("expected an input of rank 4 and a positive block size; they are ",
                           c.shape(0).ToString(), " and ", block);
  const std::string mode = c.String("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return InvalidArgument("mode is '", mode, "'; expected DCR or CRD");
  const Output x = c.in(0);
  const Output size = Const<int64_t>(c.graph(), block);
  const Output n = DimOf(x, 0), h = DimOf(x, 2), w = DimOf(x, 3);
  const Output depth = FloorDiv(DimOf(x, 1), Const<int64_t>(c.graph(), block * block));
  const bool is_dcr = mode == "DCR";
  const Output split = Reshape(
      x, is_dcr ? Stack({n, size, size, depth, h, w}) : Stack({n, depth, size, size, h, w}));
  const Output moved =
      is_dcr ? Transpose(split, {0, 3, 4, 1, 5, 2}) : Transpose(split, {0, 1, 4, 2, 5, 3});
  return c.Return(Reshape(moved, Stack({n, depth, Multiply(h, size), Multiply(w, size)})));
}

absl::Status ImportSpaceToDepth(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  const int64_t block = c.Int("blocksize", 0);
  if (rank != 4 || block < 1 || block > kMaxDepthBlock)
    return InvalidArgument("expected an input of rank 4 and a positive block size; they are ",
                           c.shape(0).ToString(), " and ", block);
  const std::string mode = c.String("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return InvalidArgument("mode is '", mode, "'; expected DCR or CRD");
  const Output x = c.in(0), size = Const<int64_t>(c.graph(), block);
  const Output n = DimOf(x, 0), depth = DimOf(x, 1);
  const Output h = FloorDiv(DimOf(x, 2), size), w = FloorDiv(DimOf(x, 3), size);
  const Output split = Reshape(x, Stack({n, depth, h, size, w, size}));
  const Output moved =
      mode == "DCR" ? Transpose(split, {0, 3, 5, 1, 2, 4}) : Transpose(split, {0, 1, 3, 5, 2, 4});
  const Output channels = Multiply(depth, Const<int64_t>(c.graph(), block * block));
  return c.Return(Reshape(moved, Stack({n, channels, h, w})));
}

absl::Status ImportReverseSequence(NodeContext& c) {
  return c.Return(ReverseSequence(c.in(0), c.in(1), c.Int("time_axis", 0), c.Int("batch_axis", 1)));
}

// ---- elements by their values

absl::Status ImportNonZero(NodeContext& c) { return c.Return(Transpose(Where(c.in(0)))); }

absl::Status ImportCompress(NodeContext& c) {
  const Output kept = Reshape(Where(c.in(1)), {-1});
  if (!c.HasAttr("axis")) return c.Return(Gather(Reshape(c.in(0), {-1}), kept));
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  WEIR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c.Int("axis", 0), rank));
  return c.Return(Gather(c.in(0), kept, {.axis = axis}));
}

absl::Status ImportOneHot(NodeContext& c) {
  const Output depth = Cast(c.Scalar(1), DT_INT32);
  const Output indices = PositiveIndices(Cast(c.in(0), DT_INT64), depth);
  const Output off = StridedSlice(c.in(2), {Index(0)}), on = StridedSlice(c.in(2), {Index(1)});
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  WEIR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c.Int("axis", -1), rank + 1));
  return c.Return(
      AddOp("OneHot", {indices, depth, on, off}, {{"axis", int64_t{axis == rank ? -1 : axis}}}));
}

// The k smallest elements are the largest of what orders them the other way round: the negative of
// a float, the complement of an integer.
Output Reversed(const Output& x) { return IsInteger(x.dtype()) ? Invert(x) : Negative(x); }

absl::Status ImportTopK(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  WEIR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c.Int("axis", -1), rank));
  const bool is_attribute = c.version() < 10;
  const bool is_largest = c.Int("largest", 1) != 0;
  c.Ignore("sorted");  // sorted elements are right either way
  if (!is_attribute && !c.has(1)) return InvalidArgument("input 1, the number k, is missing");
  const Output x = SwapAxes(c.in(0), axis, rank - 1);
  const Output k = is_attribute ? Const<int32_t>(c.graph(), static_cast<int32_t>(c.Int("k", 0)))
                                : Cast(c.Scalar(1), DT_INT32);
  const TopKResult top = TopK(is_largest ? x : Reversed(x), k);
  const Output values = is_largest ? top.values : Reversed(top.values);
  return c.Return(
      {SwapAxes(values, axis, rank - 1), SwapAxes(Cast(top.indices, DT_INT64), axis, rank - 1)});
}

constexpr Importer kImporters[] = {
    {"Compress", 9, 2, 2, ImportCompress},
    {"Concat", 7, 1, kAnyNumber, ImportConcat},
    {"DepthToSpace", 7, 1, 1, ImportDepthToSpace},
    {"NonZero", 9, 1, 1, ImportNonZero},
    {"OneHot", 9, 3, 3, ImportOneHot},
    {"ReverseSequence", 10, 2, 2, ImportReverseSequence},
    {"Slice", 7, 1, 5, ImportSlice},
    {"SpaceToDepth", 7, 1, 1, ImportSpaceToDepth},
    {"Split", 7, 1, 2, ImportSplit},
    {"Tile", 7, 2, 2, ImportTile},
    {"TopK", 7, 1, 2, ImportTopK},
    {"Trilu", 14, 1, 2, ImportTrilu},
};

}  // namespace

absl::Span<const Importer> ArrayImporters() { return kImporters; }

}  // namespace weir::onnx
