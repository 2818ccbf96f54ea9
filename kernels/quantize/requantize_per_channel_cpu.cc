#include <algorithm>
#include <cmath>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/quantize/quantize.h"
#include "weir/kernels/quantize/quantized_range.h"

// 32-bit integers whose last dimension has a symmetric range for each channel.
namespace weir {

namespace {

constexpr float kHalf = 2147483648.0f;  // the number of non-negative integers

// The maximum of each channel's range.
absl::StatusOr<std::vector<float>> ReadLimits(const KernelContext& c) {
  const Tensor& x = c.input(0);
  WEIR_RETURN_IF_ERROR(CheckRank(x, 4, "input"));
  std::vector<float> limits(static_cast<size_t>(x.dim(3)));
  for (const int k : {1, 2}) {
    const Tensor& end = c.input(k);
    if (end.num_elements() != x.dim(3)) {
      return InvalidArgument(k == 1 ? "input_min" : "input_max", " has incorrect size, expected ",
                             x.dim(3), " was ", end.num_elements());
    }
    for (size_t i = 0; i < limits.size(); ++i)
      limits[i] = std::max(limits[i], std::abs(end.data<float>()[i]));
  }
  return limits;
}

template <class T>
absl::Status Requantize(KernelContext& c) {
  const Tensor& x = c.input(0);
  WEIR_ASSIGN_OR_RETURN(const std::vector<float> limits, ReadLimits(c));
  WEIR_ASSIGN_OR_RETURN(const NumberRange range, ReadSingleRange(c, 3));
  if (std::is_same_v<T, qint8> && !(range.min < 0)) {
    return InvalidArgument("If out_type is QINT8, requested_output_min must be negative, got ",
                           range.min, " to requested_output_max ", range.max);
  }
  const float limit = std::max(std::abs(range.min), std::abs(range.max));
  if (!(limit > 0)) {
    return InvalidArgument("requested_output_min and requested_output_max must not both be 0");
  }
  std::vector<float> scales;
  for (const float from : limits)
    scales.push_back(static_cast<float>(kHighest<T>) * (from / limit / kHalf));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, x.shape()));
  const auto depth = static_cast<int64_t>(scales.size());
  c.pool().ParallelFor(x.num_elements(), 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float scaled = static_cast<float>(x.data<qint32>()[i].value) * scales[i % depth];
      out->data<T>()[i].value = static_cast<Word<T>>(
          std::clamp(ToInt64(std::nearbyint(scaled)), kLowest<T>, kHighest<T>));
    }
  });
  return WriteRange(c, 1, range);
}

absl::StatusOr<Kernel> MakeRange(const KernelInit& init) {
  const float clip = init.attr<float>("clip_value_max");
  return Kernel([clip](KernelContext& c) -> absl::Status {
    const Tensor& x = c.input(0);
    if (x.rank() == 4 && x.num_elements() == 0) return InvalidArgument("input must not be empty");
    WEIR_ASSIGN_OR_RETURN(const std::vector<float> limits, ReadLimits(c));
    std::vector<int64_t> biggest(limits.size());
    bool negative = false;
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const int64_t q = x.data<qint32>()[i].value;
      int64_t& most = biggest[static_cast<size_t>(i) % limits.size()];
      most = std::max(most, std::abs(q));
      negative |= q < 0;
    }
    float used = 0;
    for (size_t i = 0; i < limits.size(); ++i)
      used = std::max(used, limits[i] * static_cast<float>(biggest[i]) / kHalf);
    used = std::min(used, clip);
    return WriteRange(c, 0, {negative ? -used : 0.0f, used});
  });
}

}  // namespace

void AddRequantizePerChannelCpu(KernelRegistry* r) {
  const auto types = [](DataType out) {
    return TypeConstraints{{"T", DT_QINT32}, {"out_type", out}};
  };
  r->Add("RequantizePerChannel", kCpu, types(DT_QINT8), Requantize<qint8>);
  r->Add("RequantizePerChannel", kCpu, types(DT_QUINT8), Requantize<quint8>);
  r->Add("RequantizationRangePerChannel", kCpu, TypeConstraints{{"T", DT_QINT32}}, MakeRange);
}

}  // namespace weir
