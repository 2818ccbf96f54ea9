#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "weir/kernels/lib/pieces.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/nn/batch_norm.h"
#include "weir/kernels/nn/channel_ops.h"
#include "weir/kernels/nn/global_norm.h"
#include "weir/kernels/nn/image_operand.h"

// Batch normalization treats images as a matrix with one row per pixel and one column per channel.
// Reductions over the rows are split into pieces (pieces.h) with partial sums. The variance is
// computed in a second pass from the differences to the mean: the mean of squares minus the square
// of the mean would cancel catastrophically where the mean is large.
namespace weir {
namespace {

using Attributes = BatchNormAttributes;
using Matrix = BatchNormMatrix;

absl::StatusOr<Matrix> MatrixOf(const Tensor& x, const DataLayout& layout) {
  if (x.rank() != layout.rank) {
    return InvalidArgument("input must be ", layout.rank, "-dimensional", x.shape().ToString());
  }
  Matrix m;
  m.batch = x.dim(layout.batch);
  m.channels = x.dim(layout.channel);
  m.rows = m.channels == 0 ? 0 : x.num_elements() / m.channels;
  return m;
}

absl::Status CheckVector(absl::string_view name, const Tensor& t, int64_t channels,
                         absl::string_view when = "") {
  if (t.rank() == 1 && t.dim(0) == channels) return absl::OkStatus();
  if (t.rank() != 1) return InvalidArgument(name, " must be 1-dimensional", t.shape().ToString());
  return InvalidArgument(when, name,
                         " must have the same number of elements as the channels of x, got ",
                         t.num_elements(), " and ", channels);
}

// Calls fn(begin, end, sums) for ranges of rows on several threads, each with `width`
// zero-initialized partial sums, and returns the total.
template <class F>
std::vector<float> SumOverRows(ThreadPool& pool, const Matrix& m, int64_t width, F&& fn) {
  const double work = 0.3 * static_cast<double>(m.rows) * m.channels;
  const int64_t pieces = NumPiecesForWork(work, std::min(m.rows + 1, kMaxPieces));
  std::vector<float> sums(pieces * width, 0.0f);
  const auto run = [&](int i) {
    fn(m.rows * i / pieces, m.rows * (i + 1) / pieces, sums.data() + i * width);
  };
  if (pieces == 1) {
    run(0);
  } else {
    pool.ForEach(static_cast<int>(pieces), run);
  }
  for (int64_t i = 1; i < pieces; ++i) {
    for (int64_t k = 0; k < width; ++k) sums[k] += sums[i * width + k];
  }
  sums.resize(width);
  return sums;
}

struct Moments {
  std::vector<float> mean, variance;  // the biased variance
};

Moments MomentsOf(ThreadPool& pool, const float* x, const Matrix& m) {
  Moments out;
  const int64_t c = m.channels;
  out.mean = SumOverRows(pool, m, c, [&](int64_t begin, int64_t end, float* sums) {
    channel_ops::AddColumns(x + begin * c, end - begin, c, sums);
  });
  const float n = static_cast<float>(m.rows);
  for (float& v : out.mean) v /= n;
  const std::vector<float> sums =
      SumOverRows(pool, m, 2 * c, [&](int64_t begin, int64_t end, float* both) {
        channel_ops::AddMoments(x + begin * c, out.mean.data(), end - begin, c, both, both + c);
      });
  out.variance.resize(c);
  for (int64_t k = 0; k < c; ++k) {
    const float rest = sums[k] / n;  // the mean's rounding error
    out.variance[k] = std::max(0.0f, sums[c + k] / n - rest * rest);
  }
  return out;
}

// y = (x - mean) / sqrt(variance + epsilon) * scale + offset
void Normalize(ThreadPool& pool, const Matrix& m, const float* x, const float* mean,
               const float* variance, const float* scale, const float* offset, float epsilon,
               float* y) {
  std::vector<float> factor(m.channels), term(m.channels);
  for (int64_t k = 0; k < m.channels; ++k) {
    factor[k] = scale[k] / std::sqrt(variance[k] + epsilon);
    term[k] = offset[k] - mean[k] * factor[k];
  }
  pool.ParallelFor(m.rows, 0.3 * m.channels, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * m.channels;
    channel_ops::ScaleRows(x + at, factor.data(), term.data(), y + at, end - begin, m.channels);
  });
}

// The last output of the third version is unused. TensorFlow's has no elements where it calls
// oneDNN, and otherwise a zero.
absl::Status WriteReserved(KernelContext& ctx) {
  if (ctx.input(0).rank() == 4 && ctx.input(0).dtype() != DT_HALF)
    return ctx.AllocateOutput(5, Shape({0})).status();
  WEIR_ASSIGN_OR_RETURN(Tensor * zero, ctx.AllocateOutput(5, Shape()));
  *zero->data<float>() = 0;
  return absl::OkStatus();
}

template <class T>
absl::Status Forward(KernelContext& ctx, const Attributes& a) {
  const Tensor& input = ctx.input(0);
  WEIR_ASSIGN_OR_RETURN(const Matrix m, ReadBatchNorm(ctx, a));
  WEIR_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, input.shape()));
  float* stats[4];
  for (int i = 0; i < 4; ++i) {
    WEIR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(i + 1, Shape({m.channels})));
    stats[i] = out->data<float>();
  }
  if (ctx.num_outputs() == 6) WEIR_RETURN_IF_ERROR(WriteReserved(ctx));
  const bool turned = a.layout.channels_first();
  ImageOperand<T> x, y;
  WEIR_RETURN_IF_ERROR(x.Read(ctx, input, turned, m.batch, m.channels));
  WEIR_RETURN_IF_ERROR(y.Prepare(ctx, *output, turned));
  const float *scale = ctx.input_data<float>(1), *offset = ctx.input_data<float>(2);
  if (!a.is_training) {
    const float *mean = ctx.input_data<float>(3), *variance = ctx.input_data<float>(4);
    for (int i = 0; i < 4; ++i) std::copy_n(i % 2 == 0 ? mean : variance, m.channels, stats[i]);
    Normalize(ctx.pool(), m, x.data(), mean, variance, scale, offset, a.epsilon, y.data());
    return y.Write(ctx, *output, turned, m.batch, m.channels);
  }
  if (m.rows == 0) {
    for (int i = 0; i < 4; ++i) {
      std::fill_n(stats[i], m.channels, i < 2 ? std::numeric_limits<float>::quiet_NaN() : 0.0f);
    }
    return absl::OkStatus();
  }
  const Moments now = MomentsOf(ctx.pool(), x.data(), m);
  Normalize(ctx.pool(), m, x.data(), now.mean.data(), now.variance.data(), scale, offset, a.epsilon,
            y.data());
  const float unbiased =
      m.rows > 1 ? static_cast<float>(m.rows) / static_cast<float>(m.rows - 1) : 1.0f;
  for (int64_t k = 0; k < m.channels; ++k) {
    stats[0][k] = stats[2][k] = now.mean[k];
    stats[1][k] = now.variance[k] * unbiased;
    stats[3][k] = now.variance[k];
    if (a.factor == 1) continue;
    stats[0][k] = (1 - a.factor) * ctx.input_data<float>(3)[k] + a.factor * stats[0][k];
    stats[1][k] = (1 - a.factor) * ctx.input_data<float>(4)[k] + a.factor * stats[1][k];
  }
  return y.Write(ctx, *output, turned, m.batch, m.channels);
}

// With i = 1 / sqrt(variance + epsilon), p = mean(dy * (x - mean)), per channel:
//   training   dx = scale * i * (dy - mean(dy) - (x - mean) * i^2 * p)
//   inference  dx = scale * i * dy
// Both are linear in dy and x: dx = a * dy + b * x + d.
template <class T>
absl::Status Backward(KernelContext& ctx, const Attributes& attributes) {
  const Tensor &gradient = ctx.input(0), &input = ctx.input(1);
  WEIR_ASSIGN_OR_RETURN(const Matrix m, ReadBatchNormGrad(ctx, attributes));
  const int64_t c = m.channels;
  WEIR_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, input.shape()));
  WEIR_ASSIGN_OR_RETURN(Tensor * dscale, ctx.AllocateOutput(1, Shape({c})));
  WEIR_ASSIGN_OR_RETURN(Tensor * doffset, ctx.AllocateOutput(2, Shape({c})));
  for (int i = 3; i < 5; ++i) {  // unused; TensorFlow's have no elements
    WEIR_RETURN_IF_ERROR(ctx.AllocateOutput(i, Shape({0})).status());
  }
  const bool turned = attributes.layout.channels_first();
  ImageOperand<T> dy, x, dx;
  WEIR_RETURN_IF_ERROR(dy.Read(ctx, gradient, turned, m.batch, c));
  WEIR_RETURN_IF_ERROR(x.Read(ctx, input, turned, m.batch, c));
  WEIR_RETURN_IF_ERROR(dx.Prepare(ctx, *output, turned));
  const float *scale = ctx.input_data<float>(2), *mean = ctx.input_data<float>(3);
  const std::vector<float> sums =
      SumOverRows(ctx.pool(), m, 2 * c, [&](int64_t begin, int64_t end, float* both) {
        channel_ops::AddProducts(dy.data() + begin * c, x.data() + begin * c, mean, end - begin, c,
                                 both, both + c);
      });
  std::vector<float> a(c), b(c, 0.0f), d(c, 0.0f);
  const float n = static_cast<float>(m.rows);
  for (int64_t k = 0; k < c; ++k) {
    const float inverse = 1 / std::sqrt(ctx.input_data<float>(4)[k] + attributes.epsilon);
    doffset->data<float>()[k] = sums[k];
    dscale->data<float>()[k] = sums[c + k] * inverse;
    a[k] = scale[k] * inverse;
    if (!attributes.is_training || m.rows == 0) continue;
    b[k] = -a[k] * inverse * inverse * sums[c + k] / n;
    d[k] = -a[k] * sums[k] / n - b[k] * mean[k];
  }
  ctx.pool().ParallelFor(m.rows, 0.4 * c, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * c;
    channel_ops::CombineRows(dy.data() + at, x.data() + at, a.data(), b.data(), d.data(),
                             dx.data() + at, end - begin, c);
  });
  return dx.Write(ctx, *output, turned, m.batch, c);
}

template <class T>
void AddType(KernelRegistry* r, absl::string_view version) {
  const auto make = [](absl::Status (*run)(KernelContext&, const Attributes&)) {
    return [run](const KernelInit& init) -> absl::StatusOr<Kernel> {
      WEIR_ASSIGN_OR_RETURN(const Attributes a, Attributes::Read(init));
      return Kernel([a, run](KernelContext& ctx) -> absl::Status { return run(ctx, a); });
    };
  };
  TypeConstraints types = {{"T", DataTypeOf<T>::value}};
  if (!version.empty()) types.push_back({"U", DT_FLOAT});
  r->Add(absl::StrCat("FusedBatchNorm", version), kCpu, types, make(Forward<T>));
  r->Add(absl::StrCat("FusedBatchNormGrad", version), kCpu, types, make(Backward<T>));
}

}  // namespace

absl::StatusOr<BatchNormAttributes> BatchNormAttributes::Read(const KernelInit& init) {
  BatchNormAttributes a;
  WEIR_ASSIGN_OR_RETURN(a.layout, ParseDataFormat(init.attr<std::string>("data_format")));
  a.epsilon = init.attr<float>("epsilon");
  a.factor = init.node.attr_or<float>("exponential_avg_factor", 1.0f);
  a.is_training = init.attr<bool>("is_training");
  return a;
}

absl::StatusOr<BatchNormMatrix> ReadBatchNorm(const KernelContext& c,
                                              const BatchNormAttributes& a) {
  WEIR_ASSIGN_OR_RETURN(const Matrix m, MatrixOf(c.input(0), a.layout));
  WEIR_RETURN_IF_ERROR(CheckVector("scale", c.input(1), m.channels));
  WEIR_RETURN_IF_ERROR(CheckVector("offset", c.input(2), m.channels));
  for (const int i : {3, 4}) {  // whether they are used or not
    if (c.input(i).rank() == 1) continue;
    return InvalidArgument(i == 3 ? "estimated_mean" : "estimated_variance",
                           " must be 1-dimensional", c.input(i).shape().ToString());
  }
  if (a.is_training && a.factor == 1) return m;
  const absl::string_view when =
      a.is_training ? "When exponential_avg_factor != 1, " : "When is_training=false, ";
  WEIR_RETURN_IF_ERROR(CheckVector("mean", c.input(3), m.channels, when));
  WEIR_RETURN_IF_ERROR(CheckVector("variance", c.input(4), m.channels, when));
  return m;
}

absl::StatusOr<BatchNormMatrix> ReadBatchNormGrad(const KernelContext& c,
                                                  const BatchNormAttributes& a) {
  const Tensor &gradient = c.input(0), &input = c.input(1);
  WEIR_ASSIGN_OR_RETURN(const Matrix m, MatrixOf(input, a.layout));
  if (gradient.shape() != input.shape()) {
    return InvalidArgument("x and y_backprop must have same shape, but x has shape ",
                           input.shape().ToString(), " and y_backprop has shape ",
                           gradient.shape().ToString());
  }
  WEIR_RETURN_IF_ERROR(CheckVector("scale", c.input(2), m.channels));
  WEIR_RETURN_IF_ERROR(CheckVector("reserve_space_1", c.input(3), m.channels));
  WEIR_RETURN_IF_ERROR(CheckVector("reserve_space_2", c.input(4), m.channels));
  return m;
}

void AddBatchNormCpu(KernelRegistry* r) {
  AddGlobalNormCpu(r);
  AddType<float>(r, "");
  for (const char* version : {"V2", "V3"}) {
    AddType<float>(r, version);
    AddType<half>(r, version);
    AddType<bfloat16>(r, version);
  }
}

}  // namespace weir
