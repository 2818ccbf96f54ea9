#include <algorithm>
#include <array>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/broadcast.h"
#include "weir/kernels/linalg/matmul.h"
#include "weir/kernels/nn/conv_plain.h"
#include "weir/kernels/quantize/quantize.h"
#include "weir/kernels/quantize/quantized_range.h"

// Sums and products of quantized numbers, as 32-bit integers of a range that follows from the
// inputs' ranges. Sums first requantize both inputs to that range. Products need no scaling; they
// only subtract the zero points.
namespace weir {

namespace {

// ---- products

// The numbers minus their zero point. If the range does not contain 0, the zero point may be
// anything: differences wrap around.
template <class T>
absl::StatusOr<Tensor> Centered(KernelContext& c, const Tensor& x, const NumberRange& range) {
  const auto zero = static_cast<uint32_t>(ZeroPoint<T>(range));
  WEIR_ASSIGN_OR_RETURN(Tensor out, c.AllocateTemp(DT_INT32, x.shape()));
  c.pool().ParallelFor(x.num_elements(), 0.5, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto value = static_cast<uint32_t>(x.data<T>()[i].value);
      out.data<int32_t>()[i] = static_cast<int32_t>(value - zero);
    }
  });
  return out;
}

absl::StatusOr<Kernel> MakeMatMul(const KernelInit& init) {
  const bool transpose_a = init.attr<bool>("transpose_a"),
             transpose_b = init.attr<bool>("transpose_b");
  return Kernel([=](KernelContext& c) -> absl::Status {
    const Tensor &a = c.input(0), &b = c.input(1);
    WEIR_RETURN_IF_ERROR(CheckRank(c.input(2), 0, "min_a"));
    WEIR_ASSIGN_OR_RETURN(const NumberRange range_a, ReadSingleRange(c, 2));
    WEIR_RETURN_IF_ERROR(CheckNotEmpty(c, 2, range_a));
    WEIR_ASSIGN_OR_RETURN(const NumberRange range_b, ReadSingleRange(c, 4));
    WEIR_RETURN_IF_ERROR(CheckNotEmpty(c, 4, range_b));
    WEIR_ASSIGN_OR_RETURN(const MatMulArgs args,
                          MatMulOf(a.shape(), b.shape(), transpose_a, transpose_b));
    WEIR_ASSIGN_OR_RETURN(const Tensor x, Centered<quint8>(c, a, range_a));
    WEIR_ASSIGN_OR_RETURN(const Tensor y, Centered<quint8>(c, b, range_b));
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape({args.m, args.n})));
    WEIR_RETURN_IF_ERROR(RunMatMul(c.pool(), DT_INT32, args, x.raw(), y.raw(), out->raw()));
    return WriteRange(c, 1, RangeOfProducts<quint8, quint8>(range_a, range_b));
  });
}

template <class Filter>
absl::StatusOr<Kernel> MakeConv(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const ConvAttributes attributes, ConvAttributes::Read(init.node));
  return Kernel([attributes](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const NumberRange range, ReadRange(c, 2));
    WEIR_ASSIGN_OR_RETURN(const NumberRange filter_range, ReadRange(c, 4));
    WEIR_ASSIGN_OR_RETURN(const ConvArguments args,
                          ReadConvArguments(c, attributes, ConvPass::kForward));
    if (c.input(0).dim(3) != c.input(1).dim(2)) {
      return InvalidArgument("input and filter must have the same depth: ", c.input(0).dim(3),
                             " vs ", c.input(1).dim(2));
    }
    WEIR_ASSIGN_OR_RETURN(const Tensor x, Centered<quint8>(c, c.input(0), range));
    WEIR_ASSIGN_OR_RETURN(const Tensor filter, Centered<Filter>(c, c.input(1), filter_range));
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, args.output));
    PlainConv(c.pool(), args.shape, x.data<int32_t>(), filter.data<int32_t>(),
              static_cast<int32_t*>(out->raw()));
    return WriteRange(c, 1, RangeOfProducts<quint8, Filter>(range, filter_range));
  });
}

// ---- elementwise ops

// The lookup table of a function of 8-bit integers.
using ByteLookup = std::array<int32_t, 256>;
template <class T, class F>
ByteLookup MakeByteLookup(const F& f) {
  ByteLookup table;
  for (int64_t q = kLowest<T>; q <= kHighest<T>; ++q) {
    table[static_cast<uint8_t>(q)] =
        static_cast<int32_t>(std::clamp<int64_t>(f(q), kLowest<qint32>, kHighest<qint32>));
  }
  return table;
}

// Calls combine(x[i], y[i]) for all elements of inputs 0 and 1, broadcast against each other.
template <class F>
absl::Status Combine(KernelContext& c, const F& combine) {
  const Tensor &x = c.input(0), &y = c.input(1);
  WEIR_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(x.shape(), y.shape()));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  const Shape* const shapes[] = {&x.shape(), &y.shape()};
  const Broadcast layout(shape, shapes);
  int32_t* const to = static_cast<int32_t*>(out->raw());
  c.pool().ParallelFor(shape.num_elements(), 2, [&](int64_t begin, int64_t end) {
    constexpr int64_t kTile = 1024;
    uint8_t a[kTile], b[kTile];
    for (int64_t at = begin; at < end; at += kTile) {
      const int64_t n = std::min(kTile, end - at);
      const auto* const p = static_cast<const uint8_t*>(layout.Tile(0, x.raw(), 1, at, n, a));
      const auto* const q = static_cast<const uint8_t*>(layout.Tile(1, y.raw(), 1, at, n, b));
      for (int64_t i = 0; i < n; ++i) to[at + i] = combine(p[i], q[i]);
    }
  });
  return absl::OkStatus();
}

int32_t WrappingAdd(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
int32_t WrappingMul(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}

absl::Status Mul(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const NumberRange range_x, ReadRange(c, 2));
  WEIR_RETURN_IF_ERROR(CheckNotEmpty(c, 2, range_x));
  WEIR_ASSIGN_OR_RETURN(const NumberRange range_y, ReadRange(c, 4));
  WEIR_RETURN_IF_ERROR(CheckNotEmpty(c, 4, range_y));
  const auto centered = [](const NumberRange& range) {
    const int64_t zero = ZeroPoint<quint8>(range);
    return MakeByteLookup<quint8>([&](int64_t q) { return q - zero; });
  };
  const ByteLookup x = centered(range_x), y = centered(range_y);
  WEIR_RETURN_IF_ERROR(Combine(c, [&](uint8_t a, uint8_t b) { return WrappingMul(x[a], y[b]); }));
  return WriteRange(c, 1, RangeOfProducts<quint8, quint8>(range_x, range_y));
}

// Requantizes the integers of a range to another one: a line through the first two values.
ByteLookup RequantizeLinear(const NumberRange& from, const NumberRange& to) {
  constexpr int64_t kFar = int64_t{1} << 48;
  const auto at = [&](int64_t q) {
    const float x = QuantizedToFloat<quint8>(q, from);
    return std::clamp(FloatToQuantizedUnclamped<qint32>(x, to), -kFar, kFar);
  };
  const int64_t first = at(0), step = at(1) - first;
  return MakeByteLookup<quint8>([&](int64_t q) { return first + q * step; });
}
// Rounds each integer separately.
template <class T>
ByteLookup RequantizeElements(const NumberRange& from, const NumberRange& to) {
  return MakeByteLookup<T>(
      [&](int64_t q) { return FloatToQuantized<qint32>(QuantizedToFloat<T>(q, from), to); });
}

absl::Status Add(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const NumberRange range_x, ReadRange(c, 2));
  WEIR_RETURN_IF_ERROR(CheckNotEmpty(c, 2, range_x));
  WEIR_ASSIGN_OR_RETURN(const NumberRange range_y, ReadRange(c, 4));
  WEIR_RETURN_IF_ERROR(CheckNotEmpty(c, 4, range_y));
  const NumberRange range = RangeOfSums(range_x, range_y, 14);
  const auto table = [&](int i, const NumberRange& from) {
    return c.input(i).num_elements() == 1 ? RequantizeElements<quint8>(from, range)
                                          : RequantizeLinear(from, range);
  };
  const ByteLookup x = table(0, range_x), y = table(1, range_y);
  WEIR_RETURN_IF_ERROR(Combine(c, [&](uint8_t a, uint8_t b) { return WrappingAdd(x[a], y[b]); }));
  return WriteRange(c, 1, range);
}

template <class T>
absl::Status BiasAdd(KernelContext& c) {
  const Tensor &x = c.input(0), &bias = c.input(1);
  WEIR_ASSIGN_OR_RETURN(const NumberRange range_x, ReadRange(c, 2));
  WEIR_ASSIGN_OR_RETURN(const NumberRange range_bias, ReadRange(c, 4));
  if (x.rank() < 2)
    return InvalidArgument("Input tensor must be at least 2D: ", x.shape().ToString());
  if (bias.rank() != 1) return InvalidArgument("Biases must be 1D: ", bias.shape().ToString());
  if (bias.dim(0) != x.dim(-1)) {
    return InvalidArgument(
        "Must provide as many biases as the last dimension of the input tensor: ",
        bias.shape().ToString(), " vs. ", x.shape().ToString());
  }
  const NumberRange range = RangeOfSums(range_x, range_bias, 17);
  const ByteLookup values = RequantizeElements<T>(range_x, range),
                   biases = RequantizeElements<T>(range_bias, range);
  WEIR_RETURN_IF_ERROR(
      Combine(c, [&](uint8_t a, uint8_t b) { return WrappingAdd(values[a], biases[b]); }));
  return WriteRange(c, 1, range);
}

// ---- rectifiers

// Clamps to [0, `limit`].
template <class T>
absl::Status Rectify(KernelContext& c, const NumberRange& range, int64_t limit) {
  const Tensor& x = c.input(0);
  const auto low = static_cast<Word<T>>(FloatToQuantized<T>(0, range));
  const auto high = static_cast<Word<T>>(limit);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, x.shape()));
  c.pool().ParallelFor(x.num_elements(), 0.5, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      out->data<T>()[i].value = std::min(std::max(x.data<T>()[i].value, low), high);
  });
  return WriteRange(c, 1, range);
}

template <class T>
absl::Status Relu(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const NumberRange range, ReadRange(c, 1));
  return Rectify<T>(c, range, kHighest<T>);
}
template <class T>
absl::Status Relu6(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const NumberRange range, ReadRange(c, 1));
  return Rectify<T>(c, range, FloatToQuantized<T>(6, range));
}
template <class T>
absl::Status ReluX(KernelContext& c) {
  WEIR_RETURN_IF_ERROR(CheckRank(c.input(1), 0, "max_value"));
  WEIR_ASSIGN_OR_RETURN(const NumberRange range, ReadRange(c, 2));
  return Rectify<T>(c, range, FloatToQuantized<T>(c.input(1).scalar<float>(), range));
}

template <class T>
void AddRelu(KernelRegistry* r) {
  const TypeConstraints types = {{"Tinput", DataTypeOf<T>::value},
                                 {"out_type", DataTypeOf<T>::value}};
  r->Add("QuantizedRelu", kCpu, types, Relu<T>);
  r->Add("QuantizedRelu6", kCpu, types, Relu6<T>);
  r->Add("QuantizedReluX", kCpu, types, ReluX<T>);
}

}  // namespace

void AddQuantizedMathCpu(KernelRegistry* r) {
  const TypeConstraints bytes = {{"T1", DT_QUINT8}, {"T2", DT_QUINT8}, {"Toutput", DT_QINT32}};
  r->Add("QuantizedMatMul", kCpu, bytes, MakeMatMul);
  r->Add("QuantizedMul", kCpu, bytes, Mul);
  r->Add("QuantizedAdd", kCpu, bytes, Add);
  const auto conv = [](DataType filter) {
    return TypeConstraints{{"Tinput", DT_QUINT8}, {"Tfilter", filter}, {"out_type", DT_QINT32}};
  };
  r->Add("QuantizedConv2D", kCpu, conv(DT_QUINT8), MakeConv<quint8>).Cost(ConvCost);
  r->Add("QuantizedConv2D", kCpu, conv(DT_QINT8), MakeConv<qint8>).Cost(ConvCost);
  const auto bias = [](DataType t) {
    return TypeConstraints{{"T1", t}, {"T2", t}, {"out_type", DT_QINT32}};
  };
  r->Add("QuantizedBiasAdd", kCpu, bias(DT_QUINT8), BiasAdd<quint8>);
  r->Add("QuantizedBiasAdd", kCpu, bias(DT_QINT8), BiasAdd<qint8>);
  AddRelu<quint8>(r);
  AddRelu<qint32>(r);
}

}  // namespace weir
