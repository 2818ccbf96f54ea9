#include "weir/core/scope.h"
#include "weir/ops/array_internal.h"

namespace weir {

namespace {

// ---- shape rules

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

// The input's shape, each extent changed by the sum of its row in `paddings`.
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

// Space moves into the batch (or back): extents i + 1 are divided (multiplied) by the block's,
// after padding (before cropping).
absl::Status SpaceBatchShape(ShapeContext& c, const std::optional<std::vector<int64_t>>& block,
                             const std::optional<std::vector<int64_t>>& borders, int64_t num_blocks,
                             bool to_batch) {
  Shape out = c.input(0);
  if (!out.has_rank()) return absl::OkStatus();
  if (!block.has_value()) {
    Shape unknown = UnknownDims(out.rank());
    for (int i = static_cast<int>(num_blocks) + 1; num_blocks >= 0 && i < out.rank(); ++i)
      unknown.set_dim(i, out.dim(i));
    c.set_output(0, std::move(unknown));
    return absl::OkStatus();
  }
  if (out.rank() < static_cast<int>(block->size()) + 1) {
    return InvalidArgument("input rank should be >= ", block->size() + 1, " instead of ",
                           out.rank());
  }
  int64_t product = 1;
  for (size_t i = 0; i < block->size(); ++i) {
    const int dim = static_cast<int>(i) + 1;
    const int64_t size = (*block)[i];
    if (size < 1)
      return InvalidArgument("block_shape must be positive, but block_shape[", i, "] is ", size);
    if (__builtin_mul_overflow(product, size, &product))
      return InvalidArgument("block_shape is too large");
    if (!borders.has_value() || out.dim(dim) < 0) {
      out.set_dim(dim, Shape::kUnknown);
      continue;
    }
    const int64_t before = (*borders)[2 * i], after = (*borders)[2 * i + 1];
    if (before < 0 || after < 0)
      return InvalidArgument("paddings and crops cannot be negative: ", before, ", ", after);
    int64_t extent = out.dim(dim);
    WEIR_ASSIGN_OR_RETURN(const int64_t width, AddDims(before, after));
    if (to_batch) {
      WEIR_ASSIGN_OR_RETURN(extent, AddDims(extent, width));
      if (extent % size != 0) {
        return InvalidArgument("padded_shape[", i, "]=", extent,
                               " is not divisible by block_shape[", i, "]=", size);
      }
      extent /= size;
    } else {
      WEIR_ASSIGN_OR_RETURN(extent, MulDims(extent, size));
      extent -= width;
      if (extent < 0)
        return InvalidArgument("cropped_shape[", i, "]=", extent, " must be non-negative");
    }
    out.set_dim(dim, extent);
  }
  int64_t batch = out.dim(0);
  if (!to_batch && batch >= 0 && batch % product != 0) {
    return InvalidArgument("Input batch dimension (", batch,
                           ") is not divisible by product of block sizes (", product, ")");
  }
  if (to_batch) {
    WEIR_ASSIGN_OR_RETURN(batch, MulDims(batch, product));
  } else if (batch >= 0) {
    batch /= product;
  }
  out.set_dim(0, batch);
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status SpaceBatchNdShape(ShapeContext& c, bool to_batch) {
  WEIR_ASSIGN_OR_RETURN(const Shape block, c.WithRank(1, 1));
  WEIR_ASSIGN_OR_RETURN(const Shape borders, c.WithRank(2, 2));
  WEIR_ASSIGN_OR_RETURN(const int64_t rows, MergeDims(block.dim(0), borders.dim(0)));
  WEIR_RETURN_IF_ERROR(MergeDims(borders.dim(1), 2).status());
  return SpaceBatchShape(c, KnownInts(c, 1), KnownInts(c, 2), rows, to_batch);
}

absl::Status SpaceToBatchNdShape(ShapeContext& c) { return SpaceBatchNdShape(c, true); }
absl::Status BatchToSpaceNdShape(ShapeContext& c) { return SpaceBatchNdShape(c, false); }

absl::Status SpaceBatch2dShape(ShapeContext& c, bool to_batch) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 4).status());
  WEIR_ASSIGN_OR_RETURN(const Shape borders, c.WithRank(1, 2));
  WEIR_RETURN_IF_ERROR(borders.MergeWith(Shape({2, 2})).status());
  const int64_t size = c.attr<int64_t>("block_size");
  return SpaceBatchShape(c, std::vector<int64_t>{size, size}, KnownInts(c, 1), 2, to_batch);
}

absl::Status SpaceToBatchShape(ShapeContext& c) { return SpaceBatch2dShape(c, true); }
absl::Status BatchToSpaceShape(ShapeContext& c) { return SpaceBatch2dShape(c, false); }

// Where height, width and channels are; the packed channels of NCHW_VECT_C are the last dimension,
// of extent 4.
struct ImageDims {
  int rank, height, width, channels;
};

ImageDims DimsOf(const std::string& data_format) {
  if (data_format == "NHWC") return {4, 1, 2, 3};
  return {data_format == "NCHW" ? 4 : 5, 2, 3, 1};
}

absl::Status SpaceDepthShape(ShapeContext& c, bool to_depth) {
  const ImageDims at = DimsOf(c.attr<std::string>("data_format"));
  WEIR_ASSIGN_OR_RETURN(Shape out, c.WithRank(0, at.rank));
  const int64_t block = c.attr<int64_t>("block_size");
  if (block < 1 || block > kMaxDepthBlock) {
    return InvalidArgument("block_size must be in [1, ", kMaxDepthBlock, "], but is ", block);
  }
  // `extent` divided by `by` if it gets smaller, else multiplied.
  const auto scaled = [](int64_t extent, int64_t by, bool smaller) -> absl::StatusOr<int64_t> {
    if (!smaller || extent < 0) return MulDims(extent, by);
    if (extent % by == 0) return extent / by;
    return InvalidArgument("Dimension size must be evenly divisible by ", by, " but is ", extent);
  };
  for (int dim : {at.height, at.width}) {
    WEIR_ASSIGN_OR_RETURN(const int64_t extent, scaled(out.dim(dim), block, to_depth));
    out.set_dim(dim, extent);
  }
  WEIR_ASSIGN_OR_RETURN(const int64_t depth,
                        scaled(out.dim(at.channels), block * block, !to_depth));
  out.set_dim(at.channels, depth);
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status SpaceToDepthShape(ShapeContext& c) { return SpaceDepthShape(c, true); }
absl::Status DepthToSpaceShape(ShapeContext& c) { return SpaceDepthShape(c, false); }

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

// The part of dy that the input went to.
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

Grads SpaceToBatchNdGradient(GradContext& g) { return {BatchToSpaceND(g.dy(), g.x(1), g.x(2))}; }
Grads BatchToSpaceNdGradient(GradContext& g) { return {SpaceToBatchND(g.dy(), g.x(1), g.x(2))}; }

Grads SpaceToBatchGradient(GradContext& g) {
  return {AddOp("BatchToSpace", {g.dy(), g.x(1)}, {{"block_size", g.attr<int64_t>("block_size")}})};
}

Grads BatchToSpaceGradient(GradContext& g) {
  return {AddOp("SpaceToBatch", {g.dy(), g.x(1)}, {{"block_size", g.attr<int64_t>("block_size")}})};
}

Grads SpaceToDepthGradient(GradContext& g) {
  return {DepthToSpace(g.dy(), g.attr<int64_t>("block_size"), g.attr<std::string>("data_format"))};
}

Grads DepthToSpaceGradient(GradContext& g) {
  return {SpaceToDepth(g.dy(), g.attr<int64_t>("block_size"), g.attr<std::string>("data_format"))};
}

}  // namespace

void AddArrayLayoutOps(OpRegistry* ops) {
  ops->Add(OpSpec("Transpose")
               .In("x: T, perm: Tperm")
               .Out("y: T")
               .Attr("T: type")
               .Attr("Tperm: {int32, int64} = DT_INT32")
               .InferShape(TransposeShape)
               .Gradient(TransposeGradient)
               .Doc("Dimension i of the result is dimension perm[i] of x."));
  ops->Add(OpSpec("ConjugateTranspose")
               .In("x: T, perm: Tperm")
               .Out("y: T")
               .Attr("T: type")
               .Attr("Tperm: {int32, int64} = DT_INT32")
               .InferShape(TransposeShape)
               .Gradient(ConjugateTransposeGradient)
               .Doc("The transpose of x with the imaginary parts negated."));
  ops->Add(OpSpec("InvertPermutation")
               .In("x: T")
               .Out("y: T")
               .Attr("T: {int32, int64} = DT_INT32")
               .InferShape(VectorShape)
               .NotDifferentiable()
               .Doc("The permutation that undoes x."));
  ops->Add(
      OpSpec("Reverse")
          .In("tensor: T, dims: bool")
          .Out("output: T")
          .Attr("T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, "
                "half, float, double, complex64, complex128, string}")
          .InferShape(ReverseShape)
          .Gradient(ReverseGradient)
          .Doc(
              "The tensor with the order of elements reversed along the dimensions where `dims` is "
              "true."));
  ops->Add(
      OpSpec("ReverseV2")
          .In("tensor: T, axis: Tidx")
          .Out("output: T")
          .Attr("Tidx: {int32, int64} = DT_INT32")
          .Attr("T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, "
                "half, float, double, complex64, complex128, string}")
          .InferShape(ReverseV2Shape)
          .Gradient(ReverseGradient)
          .Doc("The tensor with the order of elements reversed along the dimensions named in "
               "`axis`."));
  ops->Add(OpSpec("ReverseSequence")
               .In("input: T, seq_lengths: Tlen")
               .Out("output: T")
               .Attr("seq_dim: int")
               .Attr("batch_dim: int = 0")
               .Attr("T: type")
               .Attr("Tlen: {int32, int64} = DT_INT64")
               .InferShape(ReverseSequenceShape)
               .Gradient(ReverseSequenceGradient)
               .Doc("Reverses the first seq_lengths[b] elements along `seq_dim`, for each b along "
                    "`batch_dim`."));
  ops->Add(
      OpSpec("Roll")
          .In("input: T, shift: Tshift, axis: Taxis")
          .Out("output: T")
          .Attr("T: type")
          .Attr("Tshift: {int32, int64}")
          .Attr("Taxis: {int32, int64}")
          .InferShape(RollShape)
          .Gradient(RollGradient)
          .Doc("The input shifted along dimensions; what leaves at one end enters at the other."));
  ops->Add(
      OpSpec("Pad")
          .In("input: T, paddings: Tpaddings")
          .Out("output: T")
          .Attr("T: type")
          .Attr("Tpaddings: {int32, int64} = DT_INT32")
          .InferShape(PadShape)
          .Gradient(PadGradient)
          .Doc("The input with zeros around it, as many as `paddings` says before and after each "
               "dimension."));
  ops->Add(OpSpec("PadV2")
               .In("input: T, paddings: Tpaddings, constant_values: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tpaddings: {int32, int64} = DT_INT32")
               .InferShape(PadShape)
               .Gradient(PadGradient)
               .Doc("The input with `constant_values` around it, as many as `paddings` says before "
                    "and after "
                    "each dimension."));
  ops->Add(OpSpec("MirrorPad")
               .In("input: T, paddings: Tpaddings")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tpaddings: {int32, int64} = DT_INT32")
               .Attr("mode: {'REFLECT', 'SYMMETRIC'}")
               .InferShape(PadShape)
               .Gradient(MirrorPadGradient)
               .Doc("The input with mirror images of itself around it; REFLECT does not repeat the "
                    "border, "
                    "SYMMETRIC does."));
  ops->Add(OpSpec("MirrorPadGrad")
               .In("input: T, paddings: Tpaddings")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tpaddings: {int32, int64} = DT_INT32")
               .Attr("mode: {'REFLECT', 'SYMMETRIC'}")
               .InferShape(MirrorPadGradShape)
               .Gradient(MirrorPadGradGradient)
               .Doc("The gradient of MirrorPad: the borders folded back and added."));
  ops->Add(OpSpec("SpaceToBatch")
               .In("input: T, paddings: Tpaddings")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tpaddings: {int32, int64} = DT_INT32")
               .Attr("block_size: int >= 2")
               .InferShape(SpaceToBatchShape)
               .Gradient(SpaceToBatchGradient)
               .Doc("SpaceToBatchND of the height and width of images, with square blocks."));
  ops->Add(OpSpec("SpaceToBatchND")
               .In("input: T, block_shape: Tblock_shape, paddings: Tpaddings")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tblock_shape: {int32, int64} = DT_INT32")
               .Attr("Tpaddings: {int32, int64} = DT_INT32")
               .InferShape(SpaceToBatchNdShape)
               .Gradient(SpaceToBatchNdGradient)
               .Doc("Pads the input and cuts it into blocks; each position within a block becomes "
                    "a batch of "
                    "its own."));
  ops->Add(OpSpec("BatchToSpace")
               .In("input: T, crops: Tidx")
               .Out("output: T")
               .Attr("T: type")
               .Attr("block_size: int >= 2")
               .Attr("Tidx: {int32, int64} = DT_INT32")
               .InferShape(BatchToSpaceShape)
               .Gradient(BatchToSpaceGradient)
               .Doc("BatchToSpaceND of the height and width of images, with square blocks."));
  ops->Add(OpSpec("BatchToSpaceND")
               .In("input: T, block_shape: Tblock_shape, crops: Tcrops")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tblock_shape: {int32, int64} = DT_INT32")
               .Attr("Tcrops: {int32, int64} = DT_INT32")
               .InferShape(BatchToSpaceNdShape)
               .Gradient(BatchToSpaceNdGradient)
               .Doc("Undoes SpaceToBatchND, and crops."));
  ops->Add(OpSpec("SpaceToDepth")
               .In("input: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("block_size: int >= 2")
               .Attr("data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'")
               .InferShape(SpaceToDepthShape)
               .Gradient(SpaceToDepthGradient)
               .Doc("Moves each square block of pixels into the channels of one."));
  ops->Add(OpSpec("DepthToSpace")
               .In("input: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("block_size: int >= 2")
               .Attr("data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'")
               .InferShape(DepthToSpaceShape)
               .Gradient(DepthToSpaceGradient)
               .Doc("Moves channels into square blocks of pixels."));
}

}  // namespace weir
