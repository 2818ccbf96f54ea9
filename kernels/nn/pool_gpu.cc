#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/nn/pool.h"

#include "weir/kernels/gpu/gpu_kernels.h"
#include "weir/kernels/lib/strided_copy.h"

// Pooling on a GPU. It accepts what the CPU kernels accept (pool_cpu.cc).
namespace weir {

namespace gpu {

namespace {

absl::Status CheckShapes(const KernelContext& c, PoolOp op, const Shape& image,
                         const Shape& pooled) {
  if (op == PoolOp::kAvgGrad) return CheckShape(c.input(1), pooled, "grad");
  if (op != PoolOp::kMaxGrad && op != PoolOp::kMaxGradGrad) return absl::OkStatus();
  WEIR_RETURN_IF_ERROR(CheckShape(c.input(1), pooled, "orig_output"));
  return CheckShape(c.input(2), op == PoolOp::kMaxGrad ? pooled : image, "grad");
}

// Returns the shape of the image, which AvgPoolGrad's first input holds.
absl::StatusOr<Shape> ImageShape(const KernelContext& c, PoolOp op, int rank) {
  if (op != PoolOp::kAvgGrad) return c.input(0).shape();
  const Tensor& sizes = c.input(0);
  if (sizes.rank() != 1 || sizes.num_elements() != rank) {
    return InvalidArgument("out_backprop and orig_input_shape must be ", rank,
                           "-dimensional, but orig_input_shape is ", sizes.shape().ToString());
  }
  return CheckedShape(ReadInts(sizes));
}

PoolArgs Args(const PoolShape& s) {
  PoolArgs a{.batch = s.batch, .channels = s.channels, .channels_first = s.channels_first};
  for (int i = 0; i < 3; ++i) {
    a.in[i] = s.in[i];
    a.window[i] = s.window[i];
    a.out[i] = s.out[i];
    a.stride[i] = s.stride[i];
    a.pad[i] = s.pad_before[i];
  }
  return a;
}

absl::Status RunPool(KernelContext& c, const PoolAttributes& attributes, PoolOp op) {
  WEIR_ASSIGN_OR_RETURN(const Shape image, ImageShape(c, op, attributes.layout.rank));
  WEIR_ASSIGN_OR_RETURN(const PoolShape s, PoolShape::Make(c, attributes, image));
  const int channel = attributes.layout.channel;
  if (s.output.dim(channel) != image.dim(channel) && op != PoolOp::kMax)
    return Unimplemented("Non-spatial pooling is not yet supported, except for MaxPool");
  WEIR_RETURN_IF_ERROR(CheckShapes(c, op, image, s.output));
  const bool to_image = op == PoolOp::kMaxGrad || op == PoolOp::kAvgGrad;
  WEIR_ASSIGN_OR_RETURN(Tensor* const result, c.AllocateOutput(0, to_image ? image : s.output));
  PoolArgs args = Args(s);
  args.a = c.input(op == PoolOp::kAvgGrad ? 1 : 0).raw();
  if (op == PoolOp::kMaxGrad || op == PoolOp::kMaxGradGrad) args.b = c.input(2).raw();
  args.result = result->raw();
  Pool(c.device().stream(), op, result->dtype(), args);
  return absl::OkStatus();
}

void AddPool(KernelRegistry* r, absl::string_view op, PoolOp kind,
             std::vector<std::string> host_args) {
  for (const DataType type : DataTypesOf(Floats())) {
    r->Add(op, kGpu, type, [kind](const KernelInit& init) -> absl::StatusOr<Kernel> {
       WEIR_ASSIGN_OR_RETURN(const PoolAttributes a, PoolAttributes::Read(init.node));
       return Kernel([a, kind](KernelContext& c) { return RunPool(c, a, kind); });
     }).HostArgs(host_args);
  }
}

}  // namespace

}  // namespace gpu

void AddPoolGpu(KernelRegistry* r) {
  const std::vector<std::string> none, sizes = {"ksize", "strides"}, shape = {"orig_input_shape"};
  gpu::AddPool(r, "MaxPool", gpu::PoolOp::kMax, none);
  gpu::AddPool(r, "MaxPoolV2", gpu::PoolOp::kMax, sizes);
  gpu::AddPool(r, "MaxPoolGrad", gpu::PoolOp::kMaxGrad, none);
  gpu::AddPool(r, "MaxPoolGradV2", gpu::PoolOp::kMaxGrad, sizes);
  gpu::AddPool(r, "MaxPoolGradGrad", gpu::PoolOp::kMaxGradGrad, none);
  gpu::AddPool(r, "MaxPoolGradGradV2", gpu::PoolOp::kMaxGradGrad, sizes);
  gpu::AddPool(r, "AvgPool", gpu::PoolOp::kAvg, none);
  gpu::AddPool(r, "AvgPoolGrad", gpu::PoolOp::kAvgGrad, shape);
  gpu::AddPool(r, "AvgPool3D", gpu::PoolOp::kAvg, none);
  gpu::AddPool(r, "AvgPool3DGrad", gpu::PoolOp::kAvgGrad, shape);
}

}  // namespace weir
