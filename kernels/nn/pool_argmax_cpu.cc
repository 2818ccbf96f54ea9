#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "weir/kernels/lib/accumulate.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/nn/pool.h"

// Max pooling with the positions of the maxima. It is rarely used, so the code is scalar.
namespace weir {
namespace {

// Finds the first maximum of the window of output element (y, x, c) of an image. Returns its index
// in the image.
template <class T>
int64_t FirstMaximum(const PoolShape& s, const T* image, int64_t y, int64_t x, int64_t c) {
  const int64_t y0 = y * s.stride[1] - s.pad_before[1], x0 = x * s.stride[2] - s.pad_before[2];
  const int64_t y_end = std::min(y0 + s.window[1], s.in[1]),
                x_end = std::min(x0 + s.window[2], s.in[2]);
  int64_t best = -1;
  for (int64_t iy = std::max<int64_t>(y0, 0); iy < y_end; ++iy) {
    for (int64_t ix = std::max<int64_t>(x0, 0); ix < x_end; ++ix) {
      const int64_t at = (iy * s.in[2] + ix) * s.channels + c;
      if (best < 0 || image[at] > image[best]) best = at;
    }
  }
  return best;
}

template <class T, class I>
absl::Status MaxPoolWithArgmax(KernelContext& ctx, const PoolAttributes& attributes,
                               bool include_batch) {
  const Tensor& x = ctx.input(0);
  WEIR_ASSIGN_OR_RETURN(const PoolShape s, PoolShape::Make(ctx, attributes, x.shape()));
  if (x.num_elements() == 0) {
    return InvalidArgument("tensor_in must not be empty, but has shape ", x.shape().ToString());
  }
  if (s.output.dim(3) != x.dim(3))
    return Unimplemented("MaxPoolWithArgmax does not pool across channels");
  if (x.num_elements() > std::numeric_limits<I>::max()) {
    return InvalidArgument("the positions in ", x.shape().ToString(), " do not fit Targmax");
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, s.output));
  WEIR_ASSIGN_OR_RETURN(Tensor * argmax, ctx.AllocateOutput(1, s.output));
  if (y->num_elements() == 0) return absl::OkStatus();
  const int64_t row = s.out[2] * s.channels, size = s.in_pixels() * s.channels;
  const double cost = 2.0 * static_cast<double>(s.taps()) * row;
  ctx.pool().ParallelFor(s.batch * s.out[1], cost, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t n = r / s.out[1];
      const T* const image = x.data<T>() + n * size;
      for (int64_t i = 0; i < row; ++i) {
        const int64_t best = FirstMaximum(s, image, r % s.out[1], i / s.channels, i % s.channels);
        y->data<T>()[r * row + i] = best < 0 ? std::numeric_limits<T>::lowest() : image[best];
        argmax->data<I>()[r * row + i] =
            static_cast<I>(std::max<int64_t>(best, 0) + (include_batch ? n * size : 0));
      }
    }
  });
  return absl::OkStatus();
}

// The gradient: adds each element of `grad` at the position that argmax names.
template <class T, class I>
absl::Status AddAtArgmax(const Tensor& grad, const Tensor& argmax, int64_t per_image, int64_t image,
                         Tensor* out) {
  std::memset(out->raw(), 0, out->num_bytes());
  for (int64_t i = 0; i < argmax.num_elements(); ++i) {
    const int64_t offset = i / per_image * image;
    const int64_t index = static_cast<int64_t>(argmax.data<I>()[i]);
    if (index < 0 || index >= out->num_elements() - offset) {
      return InvalidArgument("Invalid output index: ", index, " is not in [0, ",
                             out->num_elements() - offset, ")");
    }
    T& to = out->data<T>()[offset + index];
    to = Add(to, grad.data<T>()[i]);
  }
  return absl::OkStatus();
}

// The gradient of the gradient: gathers the elements at the positions that argmax names.
template <class T, class I>
absl::Status PickAtArgmax(const Tensor& grad, const Tensor& argmax, int64_t per_image,
                          int64_t image, Tensor* out) {
  for (int64_t i = 0; i < argmax.num_elements(); ++i) {
    const int64_t offset = i / per_image * image;
    const int64_t index = static_cast<int64_t>(argmax.data<I>()[i]);
    if (index < 0 || index >= grad.num_elements() - offset) {
      return InvalidArgument("Invalid input index: ", index, " is not in [0, ",
                             grad.num_elements() - offset, ")");
    }
    out->data<T>()[i] = grad.data<T>()[offset + index];
  }
  return absl::OkStatus();
}

template <class T, class I>
absl::Status ArgmaxGradient(KernelContext& ctx, const PoolAttributes& attributes,
                            bool include_batch, bool add) {
  const Tensor &x = ctx.input(0), &grad = ctx.input(1), &argmax = ctx.input(2);
  WEIR_ASSIGN_OR_RETURN(const PoolShape s, PoolShape::Make(ctx, attributes, x.shape()));
  WEIR_RETURN_IF_ERROR(CheckShape(argmax, s.output, "argmax"));
  WEIR_RETURN_IF_ERROR(CheckShape(grad, add ? s.output : x.shape(), "grad"));
  WEIR_ASSIGN_OR_RETURN(Tensor * result, ctx.AllocateOutput(0, add ? x.shape() : s.output));
  const int64_t per_image =
      std::max<int64_t>(argmax.num_elements() / std::max<int64_t>(s.batch, 1), 1);
  const int64_t image = include_batch ? 0 : x.num_elements() / std::max<int64_t>(s.batch, 1);
  return add ? AddAtArgmax<T, I>(grad, argmax, per_image, image, result)
             : PickAtArgmax<T, I>(grad, argmax, per_image, image, result);
}

enum class ArgmaxOp { kPool, kGrad, kGradGrad };

template <class T, class I>
KernelFactory Factory(ArgmaxOp op) {
  return [op](const KernelInit& init) -> absl::StatusOr<Kernel> {
    WEIR_ASSIGN_OR_RETURN(const PoolAttributes a, PoolAttributes::Read(init.node));
    const bool include_batch = init.attr<bool>("include_batch_in_index");
    return Kernel([=](KernelContext& ctx) -> absl::Status {
      if (op == ArgmaxOp::kPool) return MaxPoolWithArgmax<T, I>(ctx, a, include_batch);
      return ArgmaxGradient<T, I>(ctx, a, include_batch, op == ArgmaxOp::kGrad);
    });
  };
}

template <class I, class... Ts>
void AddAll(KernelRegistry* r, absl::string_view name, ArgmaxOp op, List<Ts...>) {
  (r->Add(name, kCpu, {{"T", DataTypeOf<Ts>::value}, {"Targmax", DataTypeOf<I>::value}},
          Factory<Ts, I>(op)),
   ...);
}

}  // namespace

void AddPoolArgmaxCpu(KernelRegistry* r) {
  AddAll<int64_t>(r, "MaxPoolWithArgmax", ArgmaxOp::kPool, RealNumbers());
  AddAll<int32_t>(r, "MaxPoolWithArgmax", ArgmaxOp::kPool, RealNumbers());
  AddAll<int64_t>(r, "MaxPoolGradWithArgmax", ArgmaxOp::kGrad, RealNumbers());
  AddAll<int32_t>(r, "MaxPoolGradWithArgmax", ArgmaxOp::kGrad, RealNumbers());
  AddAll<int64_t>(r, "MaxPoolGradGradWithArgmax", ArgmaxOp::kGradGrad, RealNumbers());
  AddAll<int32_t>(r, "MaxPoolGradGradWithArgmax", ArgmaxOp::kGradGrad, RealNumbers());
}

}  // namespace weir
