#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "weir/kernels/lib/registry.h"
#include "weir/kernels/nn/image_operand.h"

// Local response normalization. With n_c = bias + alpha * sum of x_k^2 over |k - c| <= radius:
//   y_c = x_c * n_c^-beta
//   dx_c = dy_c * n_c^-beta - 2 alpha beta x_c * sum over |k - c| <= radius of dy_k y_k / n_k
namespace weir {
namespace {

struct Lrn {
  int64_t radius = 5;
  float bias = 1, alpha = 1, beta = 0.5f;

  static absl::StatusOr<Lrn> Read(const KernelInit& init) {
    Lrn l{init.attr<int64_t>("depth_radius"), init.attr<float>("bias"), init.attr<float>("alpha"),
          init.attr<float>("beta")};
    if (l.radius >= std::numeric_limits<int32_t>::max())
      return InvalidArgument("depth_radius = ", l.radius, " larger than int max");
    if (l.radius < 0)
      return InvalidArgument("depth_radius must not be negative, but is ", l.radius);
    return l;
  }

  // to[c] = the sum of from[k] over |k - c| <= radius.
  void SumNeighbors(const float* from, float* to, int64_t n) const {
    const int64_t reach = std::min(radius, n);
    for (int64_t c = 0; c < n; ++c) {
      const int64_t begin = std::max<int64_t>(0, c - reach), end = std::min(n, c + reach + 1);
      float sum = 0;
      for (int64_t k = begin; k < end; ++k) sum += from[k];
      to[c] = sum;
    }
  }
  // norm[c] = n_c, with `squares` for scratch.
  void Norms(const float* x, float* squares, float* norm, int64_t n) const {
    for (int64_t c = 0; c < n; ++c) squares[c] = x[c] * x[c];
    SumNeighbors(squares, norm, n);
    for (int64_t c = 0; c < n; ++c) norm[c] = bias + alpha * norm[c];
  }
  float Power(float norm) const {
    return beta == 0.5f ? 1 / std::sqrt(norm) : std::pow(norm, -beta);
  }
};

// Nanoseconds per pixel.
double Cost(const Lrn& l, int64_t channels) {
  return static_cast<double>(channels) * (15 + 2.0 * std::min(l.radius, channels));
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
    std::vector<float> squares(n), norm(n);
    for (int64_t r = begin; r < end; ++r) {
      const float* from = x.data() + r * n;
      l.Norms(from, squares.data(), norm.data(), n);
      for (int64_t c = 0; c < n; ++c) y.data()[r * n + c] = from[c] * l.Power(norm[c]);
    }
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
    std::vector<float> ratio(n), norm(n), sum(n);
    for (int64_t r = begin; r < end; ++r) {
      const float *xs = x.data() + r * n, *ys = y.data() + r * n, *dys = dy.data() + r * n;
      l.Norms(xs, ratio.data(), norm.data(), n);
      for (int64_t c = 0; c < n; ++c) ratio[c] = dys[c] * ys[c] / norm[c];
      l.SumNeighbors(ratio.data(), sum.data(), n);
      for (int64_t c = 0; c < n; ++c) {
        dx.data()[r * n + c] = dys[c] * l.Power(norm[c]) - 2 * l.alpha * l.beta * xs[c] * sum[c];
      }
    }
  });
  return dx.Write(ctx, *out, false, 1, 1);
}

template <class T>
void AddType(KernelRegistry* r) {
  const auto make = [](absl::Status (*run)(KernelContext&, const Lrn&)) {
    return [run](const KernelInit& init) -> absl::StatusOr<Kernel> {
      WEIR_ASSIGN_OR_RETURN(const Lrn l, Lrn::Read(init));
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
