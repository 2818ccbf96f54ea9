#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/ops/lib/array.h"

// Moves blocks of spatial dimensions into the batch or the channels, and back.
namespace weir {

namespace {

struct Blocks {
  Dims size;            // of the block in each spatial dimension
  Dims before, after;   // padding or crop
  int64_t product = 1;  // elements per block
};

absl::Status CheckBlocks(const Dims& borders, const Shape& in, Blocks* blocks) {
  const size_t n = blocks->size.size();
  if (static_cast<size_t>(in.rank()) < n + 1) {
    return InvalidArgument("input rank should be >= ", n + 1, " instead of ", in.rank());
  }
  for (size_t i = 0; i < n; ++i) {
    if (blocks->size[i] < 1)
      return InvalidArgument("All values in block_shape must be positive, got ", blocks->size[i]);
    if (__builtin_mul_overflow(blocks->product, blocks->size[i], &blocks->product)) {
      return InvalidArgument("Product of block sizes overflows");
    }
    if (borders[2 * i] < 0 || borders[2 * i + 1] < 0)
      return InvalidArgument("Paddings must be non-negative");
    blocks->before.push_back(borders[2 * i]);
    blocks->after.push_back(borders[2 * i + 1]);
  }
  return absl::OkStatus();
}

// Returns the block sizes and borders of the -ND ops (inputs 1 and 2) or, if block_size > 0, of the
// two-dimensional ones.
absl::StatusOr<Blocks> ReadBlocks(KernelContext& c, int64_t block_size) {
  Blocks blocks;
  const Tensor& borders = c.input(block_size > 0 ? 1 : 2);
  if (block_size > 0) {
    if (c.input(0).rank() != 4)
      return InvalidArgument("Input rank should be 4 instead of ", c.input(0).rank());
    blocks.size = {block_size, block_size};
  } else {
    WEIR_RETURN_IF_ERROR(CheckRank(c.input(1), 1, "block_shape"));
    blocks.size = ReadInts(c.input(1));
  }
  if (borders.rank() != 2 || borders.dim(0) != static_cast<int64_t>(blocks.size.size()) ||
      borders.dim(1) != 2) {
    return InvalidArgument("paddings and crops must have shape [", blocks.size.size(),
                           ", 2], but have ", borders.shape().ToString());
  }
  WEIR_RETURN_IF_ERROR(CheckBlocks(ReadInts(borders), c.input(0).shape(), &blocks));
  return blocks;
}

// Each position within a block is a batch of its own; the elements at that position, in all blocks,
// form a grid with the block's stride in space. `space` is the unpadded tensor; the borders exist
// only in the padded one, so the grid is clipped to the unpadded tensor.
class BlockCopier {
 public:
  BlockCopier(const Blocks& blocks, const Tensor& space, const Tensor& batch)
      : blocks_(blocks),
        space_shape_(space.shape()),
        batch_shape_(batch.shape()),
        space_strides_(StridesOf(space.shape())),
        batch_strides_(StridesOf(batch.shape())) {}

  // Runs the copies, from space to batch or back.
  void Run(ThreadPool& pool, DataType dtype, const void* from, void* to, bool to_batch) const {
    const int64_t element = static_cast<int64_t>(ElementSize(dtype));
    for (int64_t b = 0; b < blocks_.product; ++b) {
      StridedCopy copy;
      int64_t space = 0, batch = 0;
      if (!Grid(b, to_batch, &copy, &space, &batch)) continue;
      const int64_t from_at = to_batch ? space : batch, to_at = to_batch ? batch : space;
      copy.Run(pool, dtype, static_cast<const char*>(from) + from_at * element,
               static_cast<char*>(to) + to_at * element);
    }
  }

 private:
  bool Grid(int64_t b, bool to_batch, StridedCopy* copy, int64_t* space, int64_t* batch) const {
    const size_t n = blocks_.size.size();
    const auto add = [&](int64_t extent, int64_t space_stride, int64_t batch_stride) {
      copy->AddDim(extent, to_batch ? space_stride : batch_stride,
                   to_batch ? batch_stride : space_stride);
    };
    *batch = b * space_shape_.dim(0) * batch_strides_[0];
    add(space_shape_.dim(0), space_strides_[0], batch_strides_[0]);
    Dims position(n);
    for (size_t i = n; i-- > 0; b /= blocks_.size[i]) position[i] = b % blocks_.size[i];
    for (size_t i = 0; i < n; ++i) {
      const int d = static_cast<int>(i) + 1;
      // This position in block k of the padded tensor is k * size + position - before in the
      // unpadded one.
      const int64_t size = blocks_.size[i], shift = position[i] - blocks_.before[i];
      const int64_t first = shift >= 0 ? 0 : (-shift + size - 1) / size;
      const int64_t room = space_shape_.dim(d) - shift;
      const int64_t last = std::min(batch_shape_.dim(d), room <= 0 ? 0 : (room + size - 1) / size);
      if (last <= first) return false;
      *space += (first * size + shift) * space_strides_[d];
      *batch += first * batch_strides_[d];
      add(last - first, size * space_strides_[d], batch_strides_[d]);
    }
    for (int d = static_cast<int>(n) + 1; d < space_shape_.rank(); ++d) {
      add(space_shape_.dim(d), space_strides_[d], batch_strides_[d]);
    }
    return true;
  }

  const Blocks& blocks_;
  const Shape &space_shape_, &batch_shape_;
  const Dims space_strides_, batch_strides_;
};

absl::Status SpaceToBatch(KernelContext& c, int64_t block_size) {
  WEIR_ASSIGN_OR_RETURN(const Blocks blocks, ReadBlocks(c, block_size));
  const Tensor& in = c.input(0);
  Dims dims(in.shape().dims().begin(), in.shape().dims().end());
  if (__builtin_mul_overflow(dims[0], blocks.product, &dims[0]))
    return InvalidArgument("the batch dimension overflows");
  for (size_t i = 0; i < blocks.size.size(); ++i) {
    int64_t& extent = dims[i + 1];
    if (__builtin_add_overflow(extent, blocks.before[i], &extent) ||
        __builtin_add_overflow(extent, blocks.after[i], &extent)) {
      return InvalidArgument("padded_shape[", i, "] overflows");
    }
    if (extent % blocks.size[i] != 0) {
      return InvalidArgument("padded_shape[", i, "]=", extent, " is not divisible by block_shape[",
                             i, "]=", blocks.size[i]);
    }
    extent /= blocks.size[i];
  }
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(dims));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  if (in.num_elements() != out->num_elements()) ClearElements(c.pool(), *out);
  BlockCopier(blocks, in, *out).Run(c.pool(), in.dtype(), in.raw(), out->raw(), true);
  return absl::OkStatus();
}

absl::Status BatchToSpace(KernelContext& c, int64_t block_size) {
  WEIR_ASSIGN_OR_RETURN(const Blocks blocks, ReadBlocks(c, block_size));
  const Tensor& in = c.input(0);
  Dims dims(in.shape().dims().begin(), in.shape().dims().end());
  if (dims[0] % blocks.product != 0) {
    return InvalidArgument("Input batch dimension (", dims[0],
                           ") is not divisible by product of block sizes (", blocks.product, ")");
  }
  dims[0] /= blocks.product;
  for (size_t i = 0; i < blocks.size.size(); ++i) {
    int64_t extent = 0;
    if (__builtin_mul_overflow(dims[i + 1], blocks.size[i], &extent)) {
      return InvalidArgument("the uncropped shape overflows");
    }
    if (blocks.before[i] > extent || blocks.after[i] > extent - blocks.before[i]) {
      return InvalidArgument("cropped_shape[", i, "] must be non-negative: ", extent, " - ",
                             blocks.before[i], " - ", blocks.after[i]);
    }
    dims[i + 1] = extent - blocks.before[i] - blocks.after[i];
  }
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(dims));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  BlockCopier(blocks, *out, in).Run(c.pool(), in.dtype(), in.raw(), out->raw(), false);
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeSpaceToBatch(const KernelInit& init) {
  const int64_t block_size = init.node.attr_or<int64_t>("block_size", 0);
  return Kernel(
      [block_size](KernelContext& c) -> absl::Status { return SpaceToBatch(c, block_size); });
}

absl::StatusOr<Kernel> MakeBatchToSpace(const KernelInit& init) {
  const int64_t block_size = init.node.attr_or<int64_t>("block_size", 0);
  return Kernel(
      [block_size](KernelContext& c) -> absl::Status { return BatchToSpace(c, block_size); });
}

// ---- depth

// The dimensions of an image batch: batch, height, width, channels. NCHW_VECT_C packs 4 channels
// into a fifth dimension `inner`, which moves as a unit.
struct Image {
  int64_t batch, height, width, channels, inner;
  Dims strides;  // of the five
};

Shape ImageShape(const std::string& format, const Image& i) {
  if (format == "NHWC") return Shape({i.batch, i.height, i.width, i.channels});
  if (format == "NCHW") return Shape({i.batch, i.channels, i.height, i.width});
  return Shape({i.batch, i.channels, i.height, i.width, i.inner});
}

absl::StatusOr<Image> ReadImage(const std::string& format, const Shape& s) {
  const int rank = format == "NCHW_VECT_C" ? 5 : 4;
  if (s.rank() != rank)
    return InvalidArgument("Input rank should be ", rank, " instead of ", s.rank());
  if (format == "NHWC") return Image{s.dim(0), s.dim(1), s.dim(2), s.dim(3), 1, {}};
  if (rank == 5 && s.dim(4) != 4)
    return InvalidArgument("the last dimension of NCHW_VECT_C must be 4, not ", s.dim(4));
  return Image{s.dim(0), s.dim(2), s.dim(3), s.dim(1), rank == 5 ? 4 : 1, {}};
}

void SetStrides(const std::string& format, Image* i) {
  const Dims s = StridesOf(ImageShape(format, *i));
  i->strides = format == "NHWC" ? Dims{s[0], s[1], s[2], s[3], 0}
                                : Dims{s[0], s[2], s[3], s[1], i->inner > 1 ? 1 : 0};
}

// Channel (y * block + x) * C + c of a pixel is channel c of the pixel at (y, x) in its block. With
// packed channels, groups of four move as a unit.
absl::Status MoveDepth(KernelContext& c, int64_t block, const std::string& format, bool to_depth) {
  const Tensor& in = c.input(0);
  WEIR_ASSIGN_OR_RETURN(Image from, ReadImage(format, in.shape()));
  Image to = from;
  if (to_depth) {
    if (from.height % block != 0 || from.width % block != 0) {
      return InvalidArgument("Image height ", from.height, " and width ", from.width,
                             " should be divisible by block_size: ", block);
    }
    to.height /= block;
    to.width /= block;
    if (__builtin_mul_overflow(to.channels, block * block, &to.channels)) {
      return InvalidArgument("the channels of the result overflow");
    }
  } else {
    if (from.channels % (block * block) != 0) {
      return InvalidArgument("Input depth dimension ", from.channels,
                             " should be divisible by: ", block * block);
    }
    if (__builtin_mul_overflow(to.height, block, &to.height) ||
        __builtin_mul_overflow(to.width, block, &to.width)) {
      return InvalidArgument("the height or width of the result overflows");
    }
    to.channels /= block * block;
  }
  const Shape shape = ImageShape(format, to);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (in.num_elements() == 0) return absl::OkStatus();
  SetStrides(format, &from);
  SetStrides(format, &to);
  const Image &space = to_depth ? from : to, &depth = to_depth ? to : from;
  StridedCopy copy;
  const auto add = [&](int64_t extent, int64_t space_stride, int64_t depth_stride) {
    copy.AddDim(extent, to_depth ? space_stride : depth_stride,
                to_depth ? depth_stride : space_stride);
  };
  const Dims &s = space.strides, &d = depth.strides;
  add(space.batch, s[0], d[0]);
  add(depth.height, s[1] * block, d[1]);
  add(block, s[1], d[3] * block * space.channels);
  add(depth.width, s[2] * block, d[2]);
  add(block, s[2], d[3] * space.channels);
  add(space.channels, s[3], d[3]);
  add(space.inner, s[4], d[4]);
  copy.Run(c.pool(), in.dtype(), in.raw(), out->raw());
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeMoveDepth(const KernelInit& init) {
  const int64_t block = init.attr<int64_t>("block_size");
  const std::string format = init.attr<std::string>("data_format");
  const bool to_depth = init.node.op_name() == "SpaceToDepth";
  if (block < 2 || block > kMaxDepthBlock)
    return InvalidArgument("Block size should be > 1 and sensible: ", block);
  return Kernel(
      [=](KernelContext& c) -> absl::Status { return MoveDepth(c, block, format, to_depth); });
}

}  // namespace

void AddSpaceBatchCpu(KernelRegistry* r) {
  r->Add("SpaceToBatch", kCpu, MakeSpaceToBatch).HostArgs({"paddings"});
  r->Add("SpaceToBatchND", kCpu, MakeSpaceToBatch).HostArgs({"block_shape", "paddings"});
  r->Add("BatchToSpace", kCpu, MakeBatchToSpace).HostArgs({"crops"});
  r->Add("BatchToSpaceND", kCpu, MakeBatchToSpace).HostArgs({"block_shape", "crops"});
  r->Add("SpaceToDepth", kCpu, MakeMoveDepth);
  r->Add("DepthToSpace", kCpu, MakeMoveDepth);
}

}  // namespace weir
