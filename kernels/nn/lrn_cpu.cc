#include <algorithm>
#include <limits>

#include "weir/kernels/lib/registry.h"
#include "weir/kernels/nn/image_operand.h"
#include "weir/kernels/nn/lrn_rows.h"

// Local response normalization: arguments and types. The loops are in lrn_rows.cc.
namespace weir {
namespace {

absl::StatusOr<Lrn> ReadLrn(const KernelInit& init) {
  Lrn l{init.attr<int64_t>("depth_radius"), init.attr<float>("bias"), init.attr<float>("alpha"),
        init.attr<float>("beta")};
  if (l.radius >= std::numeric_limits<int32_t>::max())
    return InvalidArgument("depth_radius = ", l.radius, " larger than int max");
  if (l.radius < 0) return InvalidArgument("depth_radius must not be negative, but is ", l.radius);
  return l;
}

// Nanoseconds per pixel.
double Cost(const Lrn& l, int64_t channels) {
  return static_cast<double>(channels) *
         (5 + 0.1 * static_cast<double>(std::min(l.radius, channels)));
}

template <class T>
absl::Status Forward(KernelContext& ctx, const Lrn& l) {
  const Tensor& in = ctx.input(0);
  if (in.rank() != 4)
    return InvalidArgument("in must be 4-dimensional, not ", in.shape().ToString());
  WEIR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  if (in.num_elements() == 0) return absl::OkStatus();
  ImageOperand<T> x, y;
  WEIR_RETURN_IF_ERROR(x.Read(ctx, in, false, 1, 1));
  WEIR_RETURN_IF_ERROR(y.Prepare(ctx, *out, false));
  const int64_t n = in.dim(3);
  ctx.pool().ParallelFor(in.num_elements() / n, Cost(l, n), [&](int64_t begin, int64_t end) {
    LrnForward(l, end - begin, n, x.data() + begin * n, y.data() + begin * n);
  });
  return y.Write(ctx, *out, false, 1, 1);
}

template <class T>
absl::Status Backward(KernelContext& ctx, const Lrn& l) {
  const Tensor& in = ctx.input(1);
  if (in.rank() != 4)
    return InvalidArgument("inputs must be 4-dimensional, not ", in.shape().ToString());
  for (int i : {0, 2}) {
    if (ctx.input(i).shape() == in.shape()) continue;
    return InvalidArgument(
        "input_grads, input_image, and out_image should have the same shape, but input ", i, " is ",
        ctx.input(i).shape().ToString(), " and input_image ", in.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  if (in.num_elements() == 0) return absl::OkStatus();
  ImageOperand<T> dy, x, y, dx;
  WEIR_RETURN_IF_ERROR(dy.Read(ctx, ctx.input(0), false, 1, 1));
  WEIR_RETURN_IF_ERROR(x.Read(ctx, in, false, 1, 1));
  WEIR_RETURN_IF_ERROR(y.Read(ctx, ctx.input(2), false, 1, 1));
  WEIR_RETURN_IF_ERROR(dx.Prepare(ctx, *out, false));
  const int64_t n = in.dim(3);
  ctx.pool().ParallelFor(in.num_elements() / n, 2 * Cost(l, n), [&](int64_t begin, int64_t end) {
    const int64_t at = begin * n;
    LrnBackward(l, end - begin, n, dy.data() + at, x.data() + at, y.data() + at, dx.data() + at);
  });
  return dx.Write(ctx, *out, false, 1, 1);
}

template <class T>
void AddType(KernelRegistry* r) {
  const auto make = [](absl::Status (*run)(KernelContext&, const Lrn&)) {
    return [run](const KernelInit& init) -> absl::StatusOr<Kernel> {
      WEIR_ASSIGN_OR_RETURN(const Lrn l, ReadLrn(init));
      return Kernel([l, run](KernelContext& ctx) -> absl::Status { return run(ctx, l); });
    };
  };
  r->Add("LRN", kCpu, DataTypeOf<T>::value, make(Forward<T>));
  r->Add("LRNGrad", kCpu, DataTypeOf<T>::value, make(Backward<T>));
}

}  // namespace

void AddLrnCpu(KernelRegistry* r) {
  AddType<float>(r);
  AddType<half>(r);
  AddType<bfloat16>(r);
}

}  // namespace weir
