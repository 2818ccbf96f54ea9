#include "weir/ops/lib/array.h"

#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"

// Moves between spatial dimensions, batch and depth.
namespace weir {

// ---- shape functions

namespace {

// Computes the shape after moving space into the batch (or back): dimensions i + 1 are divided
// (multiplied) by the block size, after padding (before cropping).
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

// The positions of the height, width and channel dimensions. In NCHW_VECT_C the packed channels are
// the last dimension, of size 4.
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
  // Returns `extent` divided by `by` if `smaller`, else multiplied by it.
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

void AddArraySpaceOps(OpRegistry* ops) {
  ops->Add(OpSpec("SpaceToBatch")
               .In("input: T, paddings: Tpaddings")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tpaddings: {int32, int64} = DT_INT32")
               .Attr("block_size: int >= 2")
               .Moves(Movement::kRearrange)
               .InferShape(SpaceToBatchShape)
               .Gradient(SpaceToBatchGradient)
               .Doc("SpaceToBatchND for the height and width of images, with square blocks."));
  ops->Add(OpSpec("SpaceToBatchND")
               .In("input: T, block_shape: Tblock_shape, paddings: Tpaddings")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tblock_shape: {int32, int64} = DT_INT32")
               .Attr("Tpaddings: {int32, int64} = DT_INT32")
               .Moves(Movement::kRearrange)
               .InferShape(SpaceToBatchNdShape)
               .Gradient(SpaceToBatchNdGradient)
               .Doc("Pads the input and divides it into blocks. Each position within a block "
                    "becomes a separate batch element."));
  ops->Add(OpSpec("BatchToSpace")
               .In("input: T, crops: Tidx")
               .Out("output: T")
               .Attr("T: type")
               .Attr("block_size: int >= 2")
               .Attr("Tidx: {int32, int64} = DT_INT32")
               .Moves(Movement::kRearrange)
               .InferShape(BatchToSpaceShape)
               .Gradient(BatchToSpaceGradient)
               .Doc("BatchToSpaceND for the height and width of images, with square blocks."));
  ops->Add(OpSpec("BatchToSpaceND")
               .In("input: T, block_shape: Tblock_shape, crops: Tcrops")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tblock_shape: {int32, int64} = DT_INT32")
               .Attr("Tcrops: {int32, int64} = DT_INT32")
               .Moves(Movement::kRearrange)
               .InferShape(BatchToSpaceNdShape)
               .Gradient(BatchToSpaceNdGradient)
               .Doc("Inverts SpaceToBatchND, and crops."));
  ops->Add(OpSpec("SpaceToDepth")
               .In("input: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("block_size: int >= 2")
               .Attr("data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'")
               .Moves(Movement::kRearrange)
               .InferShape(SpaceToDepthShape)
               .Gradient(SpaceToDepthGradient)
               .Doc("Moves each square block of pixels into the channels of one pixel."));
  ops->Add(OpSpec("DepthToSpace")
               .In("input: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("block_size: int >= 2")
               .Attr("data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'")
               .Moves(Movement::kRearrange)
               .InferShape(DepthToSpaceShape)
               .Gradient(DepthToSpaceGradient)
               .Doc("Moves channels into square blocks of pixels."));
}

// ---- builders

Output SpaceToBatchND(Output x, const Ints& block_shape, const Ints& paddings,
                      absl::string_view name) {
  return WithTwoInts("SpaceToBatchND", x, "block_shape", block_shape, "paddings", paddings, name,
                     false);
}

Output BatchToSpaceND(Output x, const Ints& block_shape, const Ints& crops,
                      absl::string_view name) {
  return WithTwoInts("BatchToSpaceND", x, "block_shape", block_shape, "crops", crops, name, false);
}

Output SpaceToDepth(Output x, int64_t block_size, absl::string_view data_format,
                    absl::string_view name) {
  return AddOp("SpaceToDepth", {x}, {{"block_size", block_size}, {"data_format", data_format}},
               name);
}

Output DepthToSpace(Output x, int64_t block_size, absl::string_view data_format,
                    absl::string_view name) {
  return AddOp("DepthToSpace", {x}, {{"block_size", block_size}, {"data_format", data_format}},
               name);
}

}  // namespace weir
