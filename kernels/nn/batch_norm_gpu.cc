#include "weir/kernels/nn/batch_norm.h"

#include <limits>

#include "weir/kernels/gpu/gpu_kernels.h"
#include "weir/kernels/lib/device_primitives.h"

// Batch normalization on a GPU; see batch_norm_cpu.cc for the formulas. Sums over the pixels of a
// channel are reductions in double. Their operands other than x and dy are materialized in a float
// temporary.
namespace weir {

namespace gpu {

namespace {

BatchNormArgs ArgsOf(const BatchNormAttributes& a, const BatchNormMatrix& m, const Tensor& x) {
  const bool first = a.layout.channels_first();
  return {.type = x.dtype(),
          .outer = first ? m.batch : m.rows,
          .channels = m.channels,
          .inner = first && m.batch > 0 ? m.rows / m.batch : 1,
          .is_training = a.is_training,
          .epsilon = a.epsilon,
          .x = x.raw()};
}

// Computes the sum or mean of float images over the pixels of each channel.
absl::Status ReduceChannels(KernelContext& c, const char* op, const BatchNormArgs& args,
                            const void* images, Tensor* out) {
  Reduction r{.reducer = FindReducer(op, DT_FLOAT),
              .count = args.outer * args.inner,
              .reduced_inside = args.inner > 1};
  r.kept.Add(args.channels, {args.inner});
  r.reduced.Add(args.outer, {args.channels * args.inner});
  r.reduced.Add(args.inner, {1});
  return Reduce(c, r, images, out->raw());
}

// Returns the images as float: the input itself, or a converted copy in `temp`.
const void* AsFloats(KernelContext& c, const Tensor& images, const Tensor& temp) {
  if (images.dtype() == DT_FLOAT) return images.raw();
  Cast(c.device().stream(), images.dtype(), DT_FLOAT, 0, images.raw(),
       const_cast<void*>(temp.raw()), images.num_elements());
  return temp.raw();
}

void FillFloats(KernelContext& c, float value, Tensor* t) {
  c.device().primitives()->Fill(sizeof(float), &value, t->raw(), t->num_elements());
}

// Computes batch_mean, batch_variance, and the mean and (biased) variance that the gradient needs.
using Statistics = Tensor* [4];

absl::Status Train(KernelContext& c, const BatchNormAttributes& a, int64_t rows,
                   const Statistics& stats, BatchNormArgs args) {
  if (rows == 0) {
    for (int i = 0; i < 4; ++i)
      FillFloats(c, i < 2 ? std::numeric_limits<float>::quiet_NaN() : 0.0f, stats[i]);
    return absl::OkStatus();
  }
  void* const stream = c.device().stream();
  const Tensor& x = c.input(0);
  WEIR_ASSIGN_OR_RETURN(Tensor temp, c.AllocateTemp(DT_FLOAT, x.shape()));
  WEIR_RETURN_IF_ERROR(ReduceChannels(c, "Mean", args, AsFloats(c, x, temp), stats[2]));
  args.mean = stats[2]->data<float>();
  args.variance = stats[3]->data<float>();
  args.temp = temp.data<float>();
  BatchNormSquares(stream, args);
  WEIR_RETURN_IF_ERROR(ReduceChannels(c, "Mean", args, temp.raw(), stats[3]));
  BatchNormalize(stream, args);
  const float unbiased = rows > 1 ? static_cast<float>(rows) / static_cast<float>(rows - 1) : 1.0f;
  for (int i = 0; i < 2; ++i) {
    const float* const old = a.factor == 1 ? nullptr : c.input_data<float>(3 + i);
    BatchNormRunning(stream, args.channels, a.factor, i == 0 ? 1.0f : unbiased, old,
                     stats[2 + i]->data<float>(), stats[i]->data<float>());
  }
  return absl::OkStatus();
}

absl::Status Forward(KernelContext& c, const BatchNormAttributes& a) {
  WEIR_ASSIGN_OR_RETURN(const BatchNormMatrix m, ReadBatchNorm(c, a));
  const Tensor& x = c.input(0);
  WEIR_ASSIGN_OR_RETURN(Tensor* const y, c.AllocateOutput(0, x.shape()));
  Statistics stats;
  for (int i = 0; i < 4; ++i) {
    WEIR_ASSIGN_OR_RETURN(stats[i], c.AllocateOutput(i + 1, Shape({m.channels})));
  }
  if (c.num_outputs() == 6) WEIR_RETURN_IF_ERROR(c.AllocateOutput(5, Shape({0})).status());
  if (m.channels == 0) return absl::OkStatus();
  BatchNormArgs args = ArgsOf(a, m, x);
  args.out = y->raw();
  args.scale = c.input_data<float>(1);
  args.offset = c.input_data<float>(2);
  if (a.is_training) return Train(c, a, m.rows, stats, args);
  args.mean = c.input_data<float>(3);
  args.variance = c.input_data<float>(4);
  for (int i = 0; i < 4; ++i)
    WEIR_RETURN_IF_ERROR(c.device().CopyOnDevice(c.input(3 + i % 2), *stats[i]));
  BatchNormalize(c.device().stream(), args);
  return absl::OkStatus();
}

absl::Status Backward(KernelContext& c, const BatchNormAttributes& a) {
  WEIR_ASSIGN_OR_RETURN(const BatchNormMatrix m, ReadBatchNormGrad(c, a));
  const Tensor &dy = c.input(0), &x = c.input(1);
  WEIR_ASSIGN_OR_RETURN(Tensor* const dx, c.AllocateOutput(0, x.shape()));
  WEIR_ASSIGN_OR_RETURN(Tensor* const dscale, c.AllocateOutput(1, Shape({m.channels})));
  WEIR_ASSIGN_OR_RETURN(Tensor* const doffset, c.AllocateOutput(2, Shape({m.channels})));
  for (int i = 3; i < 5; ++i) {  // unused; TensorFlow's have no elements
    WEIR_RETURN_IF_ERROR(c.AllocateOutput(i, Shape({0})).status());
  }
  if (m.channels == 0) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(Tensor temp, c.AllocateTemp(DT_FLOAT, x.shape()));
  WEIR_ASSIGN_OR_RETURN(Tensor product, c.AllocateTemp(DT_FLOAT, Shape({m.channels})));
  BatchNormArgs args = ArgsOf(a, m, x);
  args.dy = dy.raw();
  args.out = dx->raw();
  args.temp = temp.data<float>();
  args.scale = c.input_data<float>(2);
  args.mean = c.input_data<float>(3);
  args.variance = c.input_data<float>(4);
  args.sum = doffset->data<float>();
  args.product = product.data<float>();
  void* const stream = c.device().stream();
  WEIR_RETURN_IF_ERROR(ReduceChannels(c, "Sum", args, AsFloats(c, dy, temp), doffset));
  BatchNormProducts(stream, args);
  WEIR_RETURN_IF_ERROR(ReduceChannels(c, "Sum", args, temp.raw(), &product));
  BatchNormScaleGradient(stream, args, dscale->data<float>());
  BatchNormGradient(stream, args);
  return absl::OkStatus();
}

KernelFactory Factory(absl::Status (*run)(KernelContext&, const BatchNormAttributes&)) {
  return [run](const KernelInit& init) -> absl::StatusOr<Kernel> {
    WEIR_ASSIGN_OR_RETURN(const BatchNormAttributes a, BatchNormAttributes::Read(init));
    return Kernel([a, run](KernelContext& c) { return run(c, a); });
  };
}

}  // namespace

}  // namespace gpu

void AddBatchNormGpu(KernelRegistry* r) {
  for (const char* version : {"", "V2", "V3"}) {
    for (const DataType type : {DT_HALF, DT_BFLOAT16, DT_FLOAT}) {
      TypeConstraints types = {{"T", type}};
      if (*version == 0 && type != DT_FLOAT) continue;
      if (*version != 0) types.push_back({"U", DT_FLOAT});
      r->Add(absl::StrCat("FusedBatchNorm", version), kGpu, types, gpu::Factory(gpu::Forward));
      r->Add(absl::StrCat("FusedBatchNormGrad", version), kGpu, types, gpu::Factory(gpu::Backward));
    }
  }
}

}  // namespace weir
