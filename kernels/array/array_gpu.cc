#include "weir/kernels/array/fill_shapes.h"
#include "weir/kernels/gpu/gpu_kernels.h"
#include "weir/kernels/lib/backend.h"

// GPU kernels that read tensor values on the device: filling and one-hot rows.
namespace weir {

namespace gpu {

namespace {

absl::Status RunFill(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape shape, ShapeOfFill(c));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape));
  Repeat(c.device().stream(), ElementSize(out->dtype()), c.input(1).raw(), out->raw(),
         out->num_elements());
  return absl::OkStatus();
}

absl::Status RunOneHot(KernelContext& c, int64_t axis) {
  WEIR_ASSIGN_OR_RETURN(const OneHotLayout layout, MakeOneHotLayout(c, axis));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, layout.out));
  const Tensor &indices = c.input(0), &on = c.input(2), &off = c.input(3);
  OneHot(
      c.device().stream(), ElementSize(out->dtype()), indices.dtype(),
      {layout.outer, layout.depth, layout.inner, indices.raw(), on.raw(), off.raw(), out->raw()});
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeOneHot(const KernelInit& init) {
  const int64_t axis = init.attr<int64_t>("axis");
  return Kernel([axis](KernelContext& c) { return RunOneHot(c, axis); });
}

}  // namespace

}  // namespace gpu

void AddArrayGpu(KernelRegistry* r) {
  for (int t = DT_FLOAT; t <= DT_UINT64; ++t) {
    const DataType type = static_cast<DataType>(t);
    if (!IsPlain(type) || type == DT_INT32) continue;
    r->Add("Fill", kGpu, type, gpu::RunFill).HostArgs({"dims"});
    r->Add("OneHot", kGpu, type, gpu::MakeOneHot).HostArgs({"depth"});
  }
}

void AddLoopKernels(KernelRegistry* r) {
  AddElementwiseGpu(r);
  AddArrayGpu(r);
  AddReduceGpu(r);
  AddSoftmaxGpu(r);
  AddPoolGpu(r);
  AddBatchNormGpu(r);
  AddSharedKernels(r, kGpu);
  AddSharedRandomKernels(r, kGpu);
  AddSharedUpdateKernels(r, kGpu);
}

}  // namespace weir
