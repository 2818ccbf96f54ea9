#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/quantize/quantize.h"
#include "weir/kernels/quantize/quantized_range.h"

// Normalization of quantized images: by given means and variances of the channels, or by those of
// each channel of each image.
namespace weir {

namespace {

// ---- QuantizedBatchNormWithGlobalNormalization

// A quantized vector and its range, from three inputs.
absl::StatusOr<std::vector<float>> ReadVector(const KernelContext& c, int first, int64_t depth) {
  const Tensor& q = c.input(first);
  WEIR_ASSIGN_OR_RETURN(const NumberRange range, ReadSingleRange(c, first + 1));
  if (q.rank() != 1 || q.dim(0) != depth) {
    return InvalidArgument(c.node().op().inputs()[static_cast<size_t>(first)].name,
                           " must be a vector of ", depth, " elements, one for each channel, not ",
                           q.shape().ToString());
  }
  std::vector<float> numbers;
  for (const quint8 v : q.flat<quint8>())
    numbers.push_back(QuantizedToFloat<quint8>(v.value, range));
  return numbers;
}

// One range for all results, with 10 fraction bits.
constexpr NumberRange kFixed = {-(1 << 20), 1 << 20};
int64_t ToFixed(float x) { return FloatToQuantized<qint32>(x, kFixed); }

// The scale and offset of the integers of a channel.
std::array<qint32, 256> NormalizedChannel(const NumberRange& range, float scale, float offset) {
  const int64_t factor = ToFixed(scale), shift = ToFixed(offset), one = ToFixed(1);
  std::array<qint32, 256> table;
  for (int64_t q = 0; q < 256; ++q) {
    const int64_t x = ToFixed(QuantizedToFloat<quint8>(q, range));
    table[q].value = static_cast<int32_t>(
        std::clamp(x * factor / one + shift, kLowest<qint32>, kHighest<qint32>));
  }
  return table;
}

absl::StatusOr<Kernel> MakeBatchNorm(const KernelInit& init) {
  const float epsilon = init.attr<float>("variance_epsilon");
  const bool scales = init.attr<bool>("scale_after_normalization");
  return Kernel([=](KernelContext& c) -> absl::Status {
    const Tensor& x = c.input(0);
    WEIR_RETURN_IF_ERROR(CheckRank(x, 4, "t"));
    const int64_t depth = x.dim(3);
    WEIR_ASSIGN_OR_RETURN(const NumberRange range, ReadSingleRange(c, 1));
    WEIR_ASSIGN_OR_RETURN(const std::vector<float> mean, ReadVector(c, 3, depth));
    WEIR_ASSIGN_OR_RETURN(const std::vector<float> variance, ReadVector(c, 6, depth));
    WEIR_ASSIGN_OR_RETURN(const std::vector<float> beta, ReadVector(c, 9, depth));
    WEIR_ASSIGN_OR_RETURN(const std::vector<float> gamma, ReadVector(c, 12, depth));
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, x.shape()));
    if (x.num_elements() == 0)
      return WriteRange(c, 1, kFixed);  // independent of the number of channels
    std::vector<std::array<qint32, 256>> tables;
    for (int64_t i = 0; i < depth; ++i) {
      const float factor = 1.0f / std::sqrt(variance[i] + epsilon) * (scales ? gamma[i] : 1.0f);
      tables.push_back(NormalizedChannel(range, factor, -mean[i] * factor + beta[i]));
    }
    c.pool().ParallelFor(x.num_elements(), 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        out->data<qint32>()[i] = tables[i % depth][x.data<quint8>()[i].value];
    });
    return WriteRange(c, 1, kFixed);
  });
}

// ---- QuantizedInstanceNorm

struct InstanceNormOptions {
  bool range_given = false;
  NumberRange given;
  float epsilon = 0, min_separation = 0;
};

// The normalization of the integers of one channel of one image: (q - mean) * scale.
struct AffineMap {
  double mean = 0, scale = 0;
  double At(int64_t q) const { return (static_cast<double>(q) - mean) * scale; }
};

// Returns the normalization of each channel of an image of `pixels` pixels. Widens `used` to
// include the results.
std::vector<AffineMap> NormalizedImage(const quint8* x, int64_t pixels, int64_t depth, double step,
                                       double epsilon, NumberRange* used) {
  struct Sums {
    int64_t sum = 0, squares = 0, low = 255, high = 0;
  };
  std::vector<Sums> sums(static_cast<size_t>(depth));
  for (int64_t i = 0; i < pixels * depth; ++i) {
    Sums& s = sums[i % depth];
    const int64_t q = x[i].value;
    s.sum += q;
    s.squares += q * q;
    s.low = std::min(s.low, q);
    s.high = std::max(s.high, q);
  }
  std::vector<AffineMap> maps;
  const auto n = static_cast<double>(pixels);
  for (const Sums& s : sums) {
    const double mean = static_cast<double>(s.sum) / n;
    const double variance = std::max(static_cast<double>(s.squares) / n - mean * mean, 0.0);
    maps.push_back({mean, step / std::sqrt(variance * step * step + epsilon)});
    used->min = std::min(used->min, static_cast<float>(maps.back().At(s.low)));
    used->max = std::max(used->max, static_cast<float>(maps.back().At(s.high)));
  }
  return maps;
}

absl::Status RunInstanceNorm(KernelContext& c, const InstanceNormOptions& o) {
  const Tensor& x = c.input(0);
  WEIR_RETURN_IF_ERROR(CheckRank(x, 4, "x"));
  WEIR_ASSIGN_OR_RETURN(const NumberRange range, ReadRange(c, 1));
  if (!(range.min < range.max)) {
    return InvalidArgument("input_min must be less than input_max : ", range.min,
                           " >= ", range.max);
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, x.shape()));
  const int64_t depth = x.dim(3), pixels = x.dim(1) * x.dim(2);
  NumberRange used = {std::numeric_limits<float>::infinity(),
                      -std::numeric_limits<float>::infinity()};
  std::vector<std::vector<AffineMap>> images;
  const double step = static_cast<double>(range.max - range.min) / 255;
  for (int64_t n = 0; n < x.dim(0) && x.num_elements() > 0; ++n) {
    images.push_back(NormalizedImage(x.data<quint8>() + n * pixels * depth, pixels, depth, step,
                                     o.epsilon, &used));
  }
  if (x.num_elements() == 0) used = {0, 0};
  used.max = std::max(used.max, used.min + o.min_separation);
  if (o.range_given) used = o.given;
  c.pool().ParallelFor(x.num_elements(), 10, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const AffineMap& map = images[i / (pixels * depth)][i % depth];
      const auto y = static_cast<float>(map.At(x.data<quint8>()[i].value));
      out->data<quint8>()[i].value = static_cast<uint8_t>(FloatToQuantized<quint8>(y, used));
    }
  });
  return WriteRange(c, 1, used);
}

absl::StatusOr<Kernel> MakeInstanceNorm(const KernelInit& init) {
  InstanceNormOptions o;
  o.range_given = init.attr<bool>("output_range_given");
  o.given = {init.attr<float>("given_y_min"), init.attr<float>("given_y_max")};
  o.epsilon = init.attr<float>("variance_epsilon");
  o.min_separation = init.attr<float>("min_separation");
  if (o.range_given && !(o.given.min < o.given.max)) {
    return InvalidArgument("given_y_min must be less than given_y_max : ", o.given.min,
                           " >= ", o.given.max);
  }
  return Kernel([o](KernelContext& c) { return RunInstanceNorm(c, o); });
}

}  // namespace

void AddQuantizedNormCpu(KernelRegistry* r) {
  r->Add("QuantizedBatchNormWithGlobalNormalization", kCpu,
         TypeConstraints{{"Tinput", DT_QUINT8}, {"out_type", DT_QINT32}}, MakeBatchNorm);
  r->Add("QuantizedInstanceNorm", kCpu, DT_QUINT8, MakeInstanceNorm);
}

}  // namespace weir
