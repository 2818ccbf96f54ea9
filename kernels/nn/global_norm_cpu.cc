#include "weir/kernels/nn/global_norm.h"

#include <cmath>
#include <vector>

#include "weir/kernels/lib/arguments.h"

// Batch normalization with given moments (BatchNormWithGlobalNormalization, used by the oldest
// graphs), and its gradient. With r = 1 / sqrt(v + epsilon), s = r gamma (or r):
//   y = (t - m) s + beta
//   dt = dy s    dm = -sum(dy) s    dv = -sum(dy (t - m)) s / (2 (v + epsilon))
//   dbeta = sum(dy)    dgamma = sum(dy (t - m)) r
namespace weir {

namespace {

struct NormOptions {
  double epsilon = 0;
  bool scale = false;
};

// Computes in float, or in double for double.
template <class T>
using Computed = std::conditional_t<std::is_same_v<T, double>, double, float>;

absl::Status CheckArguments(const KernelContext& c, int gamma) {
  const Tensor& t = c.input(0);
  if (t.rank() != 4) return InvalidArgument("input must be 4-dimensional", t.shape().ToString());
  const char* const names[] = {"mean", "var", gamma == 4 ? "beta" : "gamma", "gamma"};
  for (int k = 1; k <= gamma; ++k) {
    const Tensor& each = c.input(k);
    if (each.rank() != 1)
      return InvalidArgument(names[k - 1], " must be 1-dimensional", each.shape().ToString());
    if (each.dim(0) != t.dim(3)) {
      return InvalidArgument(names[k - 1], " must have an element for each of ", t.dim(3),
                             " channels, got ", each.dim(0));
    }
  }
  return absl::OkStatus();
}

// Returns the factor of a channel.
template <class T>
std::vector<Computed<T>> Scales(const KernelContext& c, const NormOptions& o, int gamma,
                                bool with_gamma) {
  const int64_t depth = c.input(0).dim(3);
  std::vector<Computed<T>> scales(depth);
  for (int64_t j = 0; j < depth; ++j) {
    const Computed<T> v = c.input_data<T>(2)[j];
    scales[j] = 1 / std::sqrt(v + static_cast<Computed<T>>(o.epsilon));
    if (with_gamma) scales[j] *= static_cast<Computed<T>>(c.input_data<T>(gamma)[j]);
  }
  return scales;
}

template <class T>
absl::Status RunNorm(KernelContext& c, const NormOptions& o) {
  WEIR_RETURN_IF_ERROR(CheckArguments(c, 4));
  const Tensor& t = c.input(0);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, t.shape()));
  const int64_t depth = t.dim(3), rows = depth == 0 ? 0 : t.num_elements() / depth;
  const std::vector<Computed<T>> scales = Scales<T>(c, o, 4, o.scale);
  const T *x = t.data<T>(), *mean = c.input_data<T>(1), *beta = c.input_data<T>(3);
  T* const y = out->template data<T>();
  c.pool().ParallelFor(rows, static_cast<double>(depth), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < depth; ++j) {
        const Computed<T> centered =
            static_cast<Computed<T>>(x[i * depth + j]) - static_cast<Computed<T>>(mean[j]);
        y[i * depth + j] = T(centered * scales[j] + static_cast<Computed<T>>(beta[j]));
      }
    }
  });
  return absl::OkStatus();
}

template <class T>
absl::Status RunGrad(KernelContext& c, const NormOptions& o) {
  using C = Computed<T>;
  WEIR_RETURN_IF_ERROR(CheckArguments(c, 3));
  const Tensor &t = c.input(0), &backprop = c.input(4);
  WEIR_RETURN_IF_ERROR(CheckShape(backprop, t.shape(), "out_backprop"));
  const int64_t depth = t.dim(3), rows = depth == 0 ? 0 : t.num_elements() / depth;
  T* out[5];
  for (int k = 0; k < 5; ++k) {
    WEIR_ASSIGN_OR_RETURN(Tensor * each, c.AllocateOutput(k, k == 0 ? t.shape() : Shape({depth})));
    out[k] = each->template data<T>();
  }
  const std::vector<C> roots = Scales<T>(c, o, 3, false), scales = Scales<T>(c, o, 3, o.scale);
  const T *x = t.data<T>(), *mean = c.input_data<T>(1), *dy = backprop.data<T>();
  std::vector<C> sum(depth), centered_sum(depth);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < depth; ++j) {
      const C d = dy[i * depth + j];
      out[0][i * depth + j] = T(d * scales[j]);
      sum[j] += d;
      centered_sum[j] += d * (static_cast<C>(x[i * depth + j]) - static_cast<C>(mean[j]));
    }
  }
  for (int64_t j = 0; j < depth; ++j) {
    out[1][j] = T(-sum[j] * scales[j]);
    out[2][j] = T(centered_sum[j] * scales[j] * roots[j] * roots[j] * C(-0.5));
    out[3][j] = T(sum[j]);
    out[4][j] = T(o.scale ? centered_sum[j] * roots[j] : C(0));
  }
  return absl::OkStatus();
}

using Run = absl::Status (*)(KernelContext&, const NormOptions&);

KernelFactory Factory(Run run) {
  return [run](const KernelInit& init) -> absl::StatusOr<Kernel> {
    const NormOptions o = {init.attr<float>("variance_epsilon"),
                           init.attr<bool>("scale_after_normalization")};
    return Kernel([run, o](KernelContext& c) { return run(c, o); });
  };
}

template <class T>
void AddNorm(KernelRegistry* r) {
  const DataType type = DataTypeOf<T>::value;
  r->Add("BatchNormWithGlobalNormalization", kCpu, type, Factory(RunNorm<T>));
  r->Add("BatchNormWithGlobalNormalizationGrad", kCpu, type, Factory(RunGrad<T>));
}

}  // namespace

void AddGlobalNormCpu(KernelRegistry* r) {
  AddNorm<half>(r);
  AddNorm<float>(r);
  AddNorm<double>(r);
}

}  // namespace weir
