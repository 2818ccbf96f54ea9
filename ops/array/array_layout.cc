#include "weir/ops/lib/array.h"

#include <algorithm>

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"

// Rearrangements: Transpose, Reverse, Roll, Pad, Tile.
namespace weir {

// ---- shape functions

namespace {

absl::Status TransposeShape(ShapeContext& c) {
  const Shape& in = c.input(0);
  WEIR_ASSIGN_OR_RETURN(const Shape perm_shape, c.WithRank(1, 1));
  const int64_t n = in.has_rank() ? in.rank() : perm_shape.dim(0);
  if (in.has_rank() && perm_shape.dim(0) >= 0 && perm_shape.dim(0) != in.rank()) {
    return InvalidArgument("perm must have ", in.rank(), " elements, one for each dimension of ",
                           in.ToString(), ", but has ", perm_shape.dim(0));
  }
  Shape out = UnknownDims(n);
  const auto perm = KnownInts(c, 1);
  if (out.has_rank() && perm.has_value()) {
    std::vector<bool> seen(out.rank(), false);
    for (int i = 0; i < out.rank(); ++i) {
      const int64_t p = (*perm)[i] < 0 ? (*perm)[i] + out.rank() : (*perm)[i];
      if (p < 0 || p >= out.rank()) {
        return InvalidArgument("perm dim ", (*perm)[i], " is out of range of input rank ",
                               out.rank());
      }
      if (seen[p]) return InvalidArgument(p, " is duplicated in perm");
      seen[p] = true;
      out.set_dim(i, in.dim(static_cast<int>(p)));
    }
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status VectorShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape x, c.WithRank(0, 1));
  c.set_output(0, std::move(x));
  return absl::OkStatus();
}

absl::Status ReverseShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape dims, c.WithRank(1, 1));
  if (c.input(0).has_rank() && dims.dim(0) >= 0 && dims.dim(0) != c.input(0).rank()) {
    return InvalidArgument("'dims' must have length equal to input rank ", c.input(0).rank(),
                           " but has ", dims.dim(0));
  }
  return PassShape(c, 0, 0);
}

absl::Status ReverseV2Shape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  const auto axes = KnownInts(c, 1);
  if (axes.has_value() && c.input(0).has_rank()) {
    std::vector<bool> seen(c.input(0).rank(), false);
    for (int64_t axis : *axes) {
      WEIR_ASSIGN_OR_RETURN(const int i, CheckedAxis(axis, c.input(0).rank()));
      if (seen[i]) return InvalidArgument("axis ", i, " specified more than once.");
      seen[i] = true;
    }
  }
  return PassShape(c, 0, 0);
}

absl::Status ReverseSequenceShape(ShapeContext& c) {
  Shape out = c.input(0);
  WEIR_ASSIGN_OR_RETURN(const Shape lengths, c.WithRank(1, 1));
  if (!out.has_rank()) return absl::OkStatus();
  const int64_t seq = c.attr<int64_t>("seq_dim"), batch = c.attr<int64_t>("batch_dim");
  if (batch < 0 || batch >= out.rank())
    return InvalidArgument("batch_dim must be < input rank: ", batch, " vs. ", out.rank());
  if (seq < 0 || seq >= out.rank())
    return InvalidArgument("seq_dim must be < input rank: ", seq, " vs. ", out.rank());
  WEIR_ASSIGN_OR_RETURN(const int64_t extent,
                        MergeDims(out.dim(static_cast<int>(batch)), lengths.dim(0)));
  out.set_dim(static_cast<int>(batch), extent);
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status RollShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRankAtLeast(0, 1).status());
  WEIR_RETURN_IF_ERROR(c.WithRankAtMost(1, 1).status());
  WEIR_RETURN_IF_ERROR(c.WithRankAtMost(2, 1).status());
  return PassShape(c, 0, 0);
}

// Sets the output shape to the input's shape with each dimension changed by `sign` times the sum of
// its row in `paddings`.
absl::Status PaddedShape(ShapeContext& c, int sign) {
  WEIR_ASSIGN_OR_RETURN(const Shape paddings, c.WithRank(1, 2));
  if (paddings.dim(1) >= 0 && paddings.dim(1) != 2) {
    return InvalidArgument("paddings must be a matrix with 2 columns, but has shape ",
                           paddings.ToString());
  }
  const Shape in = c.input(0).has_rank() ? c.input(0) : UnknownDims(paddings.dim(0));
  if (!in.has_rank()) return absl::OkStatus();
  if (paddings.dim(0) >= 0 && paddings.dim(0) != in.rank()) {
    return InvalidArgument("The first dimension of paddings must be the rank of inputs ",
                           paddings.ToString(), " ", in.ToString());
  }
  const auto widths = KnownInts(c, 1);
  Shape out = UnknownDims(in.rank());
  for (int i = 0; widths.has_value() && i < in.rank(); ++i) {
    const int64_t before = (*widths)[2 * i], after = (*widths)[2 * i + 1];
    if (before < 0 || after < 0)
      return InvalidArgument("Paddings must be non-negative: ", before, ", ", after);
    WEIR_ASSIGN_OR_RETURN(const int64_t width, AddDims(before, after));
    int64_t extent = in.dim(i);
    if (sign > 0) {
      WEIR_ASSIGN_OR_RETURN(extent, AddDims(extent, width));
    } else if (extent >= 0) {
      extent = std::max<int64_t>(extent - width, 0);
    }
    out.set_dim(i, extent);
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status PadShape(ShapeContext& c) { return PaddedShape(c, 1); }
absl::Status MirrorPadGradShape(ShapeContext& c) { return PaddedShape(c, -1); }

absl::Status TileShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t n, VectorLength(c, 1));
  Shape out = c.input(0).has_rank() ? c.input(0) : UnknownDims(n);
  if (!out.has_rank()) return absl::OkStatus();
  if (n >= 0 && n != out.rank()) {
    return InvalidArgument("Expected multiples argument to be a vector of length ", out.rank(),
                           " but got length ", n);
  }
  WEIR_ASSIGN_OR_RETURN(const Shape multiples, RequestedShape(c, 1));
  if (multiples.has_rank() && multiples.rank() != out.rank()) {
    return InvalidArgument("Expected multiples argument to be a vector of length ", out.rank(),
                           " but got length ", multiples.rank());
  }
  for (int i = 0; i < out.rank(); ++i) {
    const int64_t times = multiples.has_rank() ? multiples.dim(i) : Shape::kUnknown;
    WEIR_ASSIGN_OR_RETURN(const int64_t extent, MulDims(out.dim(i), times));
    out.set_dim(i, extent);
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status TileGradShape(ShapeContext& c) {
  c.set_output(0, UnknownDims(c.input(0).rank()));
  return absl::OkStatus();
}

// ---- gradients

Grads TransposeGradient(GradContext& g) { return {Transpose(g.dy(), InvertPermutation(g.x(1)))}; }

Grads ConjugateTransposeGradient(GradContext& g) {
  return {ConjugateTranspose(g.dy(), InvertPermutation(g.x(1)))};
}

Grads ReverseGradient(GradContext& g) { return {AddOp(g.node().op_name(), {g.dy(), g.x(1)})}; }

Grads ReverseSequenceGradient(GradContext& g) {
  return {
      ReverseSequence(g.dy(), g.x(1), g.attr<int64_t>("seq_dim"), g.attr<int64_t>("batch_dim"))};
}

Grads RollGradient(GradContext& g) {
  const Output back = AddOp("Neg", {g.x(1)});
  return {Roll(g.dy(), back, g.x(2))};
}

// Returns the slice of dy that corresponds to the input.
Grads PadGradient(GradContext& g) {
  Graph& graph = g.graph();
  const Output rank = Rank(g.x(0));
  const DataType type = g.x(1).dtype();
  Output column;
  {
    NameScope scope(graph, "stack");
    column =
        AddOp("Pack", {Outputs{Cast(rank, type), Ints(1).In(graph, "1", type)}}, {}, scope.name());
  }
  const Output before = Slice(g.x(1), {0, 0}, column);
  const Output begin = Reshape(before, {-1});
  return {Slice(g.dy(), begin, ShapeTensor(g.x(0), type))};
}

Grads MirrorPadGradient(GradContext& g) {
  return {AddOp("MirrorPadGrad", {g.dy(), g.x(1)}, {{"mode", g.attr<std::string>("mode")}})};
}

Grads MirrorPadGradGradient(GradContext& g) {
  return {AddOp("MirrorPad", {g.dy(), g.x(1)}, {{"mode", g.attr<std::string>("mode")}})};
}

// Reshapes dy to [m0, d0, m1, d1, ...] and sums it over the multiples.
Grads TileGradient(GradContext& g) {
  const Output shape = ShapeTensor(g.x(0), g.x(1).dtype());
  const Output split = Reshape(Transpose(Stack({g.x(1), shape})), {-1});
  const Output axes = RangeOp(g.graph(), 0, Size(split), 2);
  const Output dx = ReduceSum(Reshape(g.dy(), split), axes);
  if (dx.valid()) {
    if (absl::Status s = g.graph().RefineShape(dx, g.x(0).shape()); !s.ok()) g.graph().Fail(s);
  }
  return {dx};
}

}  // namespace

void AddArrayLayoutOps(OpRegistry* ops) {
  ops->Add(OpSpec("Transpose")
               .In("x: T, perm: Tperm")
               .Out("y: T")
               .Attr("T: type")
               .Attr("Tperm: {int32, int64} = DT_INT32")
               .Moves(Movement::kRearrange)
               .InferShape(TransposeShape)
               .Gradient(TransposeGradient)
               .Doc("Permutes dimensions: dimension i of the result is dimension perm[i] of x."));
  ops->Add(OpSpec("ConjugateTranspose")
               .In("x: T, perm: Tperm")
               .Out("y: T")
               .Attr("T: type")
               .Attr("Tperm: {int32, int64} = DT_INT32")
               .InferShape(TransposeShape)
               .Gradient(ConjugateTransposeGradient)
               .Doc("Permutes dimensions like Transpose, and conjugates the elements."));
  ops->Add(OpSpec("InvertPermutation")
               .In("x: T")
               .Out("y: T")
               .Attr("T: {int32, int64} = DT_INT32")
               .InferShape(VectorShape)
               .NotDifferentiable()
               .Doc("Computes the inverse of the permutation x."));
  ops->Add(
      OpSpec("Reverse")
          .In("tensor: T, dims: bool")
          .Out("output: T")
          .Attr("T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, "
                "half, float, double, complex64, complex128, string}")
          .InferShape(ReverseShape)
          .Gradient(ReverseGradient)
          .Doc("Reverses the order of elements along the dimensions where `dims` is true."));
  ops->Add(
      OpSpec("ReverseV2")
          .In("tensor: T, axis: Tidx")
          .Out("output: T")
          .Attr("Tidx: {int32, int64} = DT_INT32")
          .Attr("T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, "
                "half, float, double, complex64, complex128, string}")
          .Moves(Movement::kRearrange)
          .InferShape(ReverseV2Shape)
          .Gradient(ReverseGradient)
          .Doc("Reverses the order of elements along the dimensions in `axis`."));
  ops->Add(OpSpec("ReverseSequence")
               .In("input: T, seq_lengths: Tlen")
               .Out("output: T")
               .Attr("seq_dim: int")
               .Attr("batch_dim: int = 0")
               .Attr("T: type")
               .Attr("Tlen: {int32, int64} = DT_INT64")
               .Moves(Movement::kRearrange)
               .InferShape(ReverseSequenceShape)
               .Gradient(ReverseSequenceGradient)
               .Doc("Reverses the first seq_lengths[b] elements along `seq_dim` for each index b "
                    "along `batch_dim`."));
  ops->Add(OpSpec("Roll")
               .In("input: T, shift: Tshift, axis: Taxis")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tshift: {int32, int64}")
               .Attr("Taxis: {int32, int64}")
               .Moves(Movement::kRearrange)
               .InferShape(RollShape)
               .Gradient(RollGradient)
               .Doc("Rolls the input along dimensions: elements that leave at one end enter at the "
                    "other."));
  ops->Add(OpSpec("Pad")
               .In("input: T, paddings: Tpaddings")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tpaddings: {int32, int64} = DT_INT32")
               .Moves(Movement::kRearrange)
               .IdentityIfSameShape()
               .Rows(RowRule::kPad)
               .InferShape(PadShape)
               .Gradient(PadGradient)
               .Doc("Pads the input with zeros. `paddings` holds the number of elements before and "
                    "after each dimension."));
  ops->Add(OpSpec("PadV2")
               .In("input: T, paddings: Tpaddings, constant_values: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tpaddings: {int32, int64} = DT_INT32")
               .Moves(Movement::kRearrange)
               .IdentityIfSameShape()
               .InferShape(PadShape)
               .Gradient(PadGradient)
               .Doc("Pads the input with `constant_values`. `paddings` holds the number of "
                    "elements before and after each dimension."));
  ops->Add(OpSpec("MirrorPad")
               .In("input: T, paddings: Tpaddings")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tpaddings: {int32, int64} = DT_INT32")
               .Attr("mode: {'REFLECT', 'SYMMETRIC'}")
               .Moves(Movement::kRearrange)
               .IdentityIfSameShape()
               .InferShape(PadShape)
               .Gradient(MirrorPadGradient)
               .Doc("Pads the input with mirror images of itself. REFLECT does not repeat the "
                    "border, SYMMETRIC does."));
  ops->Add(OpSpec("MirrorPadGrad")
               .In("input: T, paddings: Tpaddings")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tpaddings: {int32, int64} = DT_INT32")
               .Attr("mode: {'REFLECT', 'SYMMETRIC'}")
               .InferShape(MirrorPadGradShape)
               .Gradient(MirrorPadGradGradient)
               .Doc("Computes the gradient of MirrorPad: folds the borders back and adds them."));
  ops->Add(OpSpec("Tile")
               .In("input: T, multiples: Tmultiples")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tmultiples: {int32, int64} = DT_INT32")
               .Moves(Movement::kRearrange)
               .IdentityIfSameShape()
               .Repeats(0)
               .InferShape(TileShape)
               .Gradient(TileGradient)
               .Doc("Repeats the input `multiples` times in each dimension."));
  ops->Add(OpSpec("TileGrad")
               .In("input: T, multiples: int32")
               .Out("output: T")
               .Attr("T: type")
               .Deprecated(3, "use Sum of a Reshape")
               .InferShape(TileGradShape)
               .Doc("Sums the repetitions of a tiled tensor."));
}

// ---- builders

Output Transpose(Output x) {
  if (!x.valid()) return {};
  Graph& g = x.graph();
  const NameScope scope(g, "transpose");
  if (!x.shape().has_rank()) {
    const Output last = SubOp(Rank(x), Const(g, 1, "sub/y"));
    return AddOp("Transpose", {x, RangeOp(g, last, -1, -1, "Range")}, {}, scope.name());
  }
  std::vector<int64_t> perm;
  for (int i = x.shape().rank() - 1; i >= 0; --i) perm.push_back(i);
  return AddOp("Transpose", {x, Ints(std::move(perm)).In(g, "perm")}, {}, scope.name());
}

Output Transpose(Output x, const Ints& perm, absl::string_view name) {
  return WithInts("Transpose", x, "perm", perm, name, {}, "transpose");
}

Output ConjugateTranspose(Output x, const Ints& perm, absl::string_view name) {
  const bool is_complex = IsComplex(x.dtype());
  return WithInts(is_complex ? "ConjugateTranspose" : "Transpose", x, "perm", perm, name, {},
                  "transpose");
}

Output InvertPermutation(Output x, absl::string_view name) {
  return AddOp("InvertPermutation", {x}, {}, name);
}

Output Reverse(Output x, const Ints& axes, absl::string_view name) {
  return WithInts("ReverseV2", x, "axis", axes, name);
}

Output ReverseSequence(Output x, Output lengths, int64_t seq_dim, int64_t batch_dim,
                       absl::string_view name) {
  return AddOp("ReverseSequence", {x, lengths}, {{"seq_dim", seq_dim}, {"batch_dim", batch_dim}},
               name);
}

Output Roll(Output x, const Ints& shift, const Ints& axis, absl::string_view name) {
  return WithTwoInts("Roll", x, "shift", shift, "axis", axis, name, false);
}

Output Pad(Output x, const Ints& paddings, absl::string_view name) {
  return WithInts("Pad", x, "paddings", paddings, name);
}

Output PadV2(Output x, const Ints& paddings, const TensorArg& value, absl::string_view name) {
  if (!x.valid()) return {};
  Graph& g = x.graph();
  NodeScope scope(g, name, "PadV2");
  const Output widths = paddings.In(g, "paddings");
  return AddOp("PadV2", {x, widths, value.In(g, x.dtype(), "constant_values")}, {}, scope.name());
}

Output MirrorPad(Output x, const Ints& paddings, MirrorMode mode, absl::string_view name) {
  return WithInts("MirrorPad", x, "paddings", paddings, name,
                  {{"mode", mode == MirrorMode::kReflect ? "REFLECT" : "SYMMETRIC"}});
}

Output Tile(Output x, const Ints& multiples, absl::string_view name) {
  return WithInts("Tile", x, "multiples", multiples, name);
}

}  // namespace weir
