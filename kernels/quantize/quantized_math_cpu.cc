#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/blocks.h"
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

// Writes elements [first, last) of a row of the left matrix. Called from any thread.
using RowReader = absl::FunctionRef<void(int64_t row, int64_t first, int64_t last, float* to)>;

// A float holds all whole numbers up to 2^24, so a sum of 256 products of numbers up to 255 is
// exact in any order. Longer sums are split into such parts, which are added as integers.
constexpr int64_t kExactTerms = 256;
constexpr int64_t kRows = 1024;

void AddIntegers(ThreadPool& pool, const float* from, int64_t n, bool first, int32_t* to) {
  pool.ParallelFor(n, 0.5, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto part = static_cast<uint32_t>(static_cast<int32_t>(from[i]));
      to[i] = static_cast<int32_t>(first ? part : part + static_cast<uint32_t>(to[i]));
    }
  });
}

// Computes out = A B for whole numbers of at most nine bits, sign included, with the float GEMM: A
// is m x k, B k x n, both row-major. Sums wrap around at 32 bits.
absl::Status MultiplyExactly(KernelContext& c, int64_t m, int64_t n, int64_t k, RowReader a,
                             const float* b, int32_t* out) {
  ThreadPool& pool = c.pool();
  if (m == 0 || n == 0) return absl::OkStatus();
  if (k == 0) {
    std::fill_n(out, m * n, 0);
    return absl::OkStatus();
  }
  const int64_t most_rows = std::min(kRows, m), most_terms = std::min(kExactTerms, k);
  WEIR_ASSIGN_OR_RETURN(Tensor left, c.AllocateTemp(DT_FLOAT, Shape({most_rows, most_terms})));
  WEIR_ASSIGN_OR_RETURN(Tensor sums, c.AllocateTemp(DT_FLOAT, Shape({most_rows, n})));
  for (int64_t first = 0; first < k; first += kExactTerms) {
    const int64_t terms = std::min(kExactTerms, k - first);
    for (int64_t row = 0; row < m; row += kRows) {
      ThrowIfCancelled();
      const int64_t rows = std::min(kRows, m - row);
      float* const to = left.data<float>();
      pool.ParallelFor(rows, static_cast<double>(terms), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) a(row + i, first, first + terms, to + i * terms);
      });
      WEIR_RETURN_IF_ERROR(RunMatMul(pool, DT_FLOAT, {.m = rows, .n = n, .k = terms}, to,
                                     b + first * n, sums.raw()));
      AddIntegers(pool, sums.data<float>(), rows * n, first == 0, out + row * n);
    }
  }
  return absl::OkStatus();
}

// Whether the centered numbers have at most nine bits with the sign: the range contains 0.
template <class T>
bool IsNineBits(const NumberRange& range) {
  const int32_t zero = ZeroPoint<T>(range);
  return zero >= kLowest<T> && zero <= kHighest<T>;
}
template <class T>
void CenterRun(const T* from, int64_t n, int32_t zero, float* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i].value - zero);
}
template <class T>
absl::StatusOr<Tensor> CenteredFloats(KernelContext& c, const Tensor& x, const NumberRange& range) {
  WEIR_ASSIGN_OR_RETURN(Tensor out, c.AllocateTemp(DT_FLOAT, x.shape()));
  c.pool().ParallelFor(x.num_elements(), 0.5, [&](int64_t begin, int64_t end) {
    CenterRun(x.data<T>() + begin, end - begin, ZeroPoint<T>(range), out.data<float>() + begin);
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
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape({args.m, args.n})));
    auto* const sums = static_cast<int32_t*>(out->raw());
    if (!transpose_a && !transpose_b && IsNineBits<quint8>(range_a) &&
        IsNineBits<quint8>(range_b)) {
      WEIR_ASSIGN_OR_RETURN(const Tensor right, CenteredFloats<quint8>(c, b, range_b));
      const auto row = [&, zero = ZeroPoint<quint8>(range_a)](int64_t i, int64_t first,
                                                              int64_t last, float* to) {
        CenterRun(a.data<quint8>() + i * args.k + first, last - first, zero, to);
      };
      WEIR_RETURN_IF_ERROR(
          MultiplyExactly(c, args.m, args.n, args.k, row, right.data<float>(), sums));
    } else {
      WEIR_ASSIGN_OR_RETURN(const Tensor x, Centered<quint8>(c, a, range_a));
      WEIR_ASSIGN_OR_RETURN(const Tensor y, Centered<quint8>(c, b, range_b));
      WEIR_RETURN_IF_ERROR(RunMatMul(c.pool(), DT_INT32, args, x.raw(), y.raw(), sums));
    }
    return WriteRange(c, 1, RangeOfProducts<quint8, quint8>(range_a, range_b));
  });
}

// Reads the taps of one output pixel, which are a row of the matrix that the filter multiplies.
class Im2colRows {
 public:
  Im2colRows(const ConvShape& shape, const quint8* image, int32_t zero)
      : shape_(shape), image_(image), zero_(zero) {}

  void operator()(int64_t row, int64_t first, int64_t last, float* to) const {
    const int64_t x = row % shape_.out[2], y = row / shape_.out[2] % shape_.out[1];
    const int64_t n = row / (shape_.out[2] * shape_.out[1]), depth = shape_.in_channels;
    while (first < last) {
      const int64_t tap = first / depth, end = std::min(last, (tap + 1) * depth);
      const quint8* const pixel = Pixel(n, y, x, tap);
      if (pixel == nullptr) {
        std::fill_n(to, end - first, 0.0f);
      } else {
        CenterRun(pixel + first % depth, end - first, zero_, to);
      }
      to += end - first;
      first = end;
    }
  }

 private:
  // Returns null outside the image.
  const quint8* Pixel(int64_t n, int64_t y, int64_t x, int64_t tap) const {
    const ConvShape& s = shape_;
    const int64_t iy = y * s.stride[1] - s.pad_before[1] + tap / s.kernel[2] * s.dilation[1];
    const int64_t ix = x * s.stride[2] - s.pad_before[2] + tap % s.kernel[2] * s.dilation[2];
    if (iy < 0 || iy >= s.in[1] || ix < 0 || ix >= s.in[2]) return nullptr;
    return image_ + ((n * s.in[1] + iy) * s.in[2] + ix) * s.in_channels;
  }

  const ConvShape& shape_;
  const quint8* const image_;
  const int32_t zero_;
};

template <class Filter>
absl::StatusOr<Kernel> MakeConv(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const ConvAttributes attributes, ConvAttributes::Read(init.node));
  return Kernel([attributes](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const NumberRange range, ReadRange(c, 2));
    WEIR_ASSIGN_OR_RETURN(const NumberRange filter_range, ReadRange(c, 4));
    WEIR_ASSIGN_OR_RETURN(const ConvArguments args,
                          ReadConvArguments(c, attributes, ConvPass::kForward));
    const Tensor &image = c.input(0), &weights = c.input(1);
    if (image.dim(3) != weights.dim(2)) {
      return InvalidArgument("input and filter must have the same depth: ", image.dim(3), " vs ",
                             weights.dim(2));
    }
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, args.output));
    auto* const sums = static_cast<int32_t*>(out->raw());
    const ConvShape& s = args.shape;
    if (IsNineBits<quint8>(range) && IsNineBits<Filter>(filter_range)) {
      WEIR_ASSIGN_OR_RETURN(const Tensor filter, CenteredFloats<Filter>(c, weights, filter_range));
      const Im2colRows rows(s, image.data<quint8>(), ZeroPoint<quint8>(range));
      WEIR_RETURN_IF_ERROR(MultiplyExactly(c, s.batch * s.out[1] * s.out[2], s.out_channels,
                                           s.taps() * s.in_channels, rows, filter.data<float>(),
                                           sums));
    } else {
      WEIR_ASSIGN_OR_RETURN(const Tensor x, Centered<quint8>(c, image, range));
      WEIR_ASSIGN_OR_RETURN(const Tensor filter, Centered<Filter>(c, weights, filter_range));
      PlainConv(c.pool(), s, x.data<int32_t>(), filter.data<int32_t>(), sums);
    }
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
// Requantizes each integer to 32 bits in float arithmetic, as TensorFlow's vector loops do: the
// scaled minimum is rounded to a float, so that 0 may become a multiple of 128.
template <class T>
ByteLookup RequantizeInFloat(const NumberRange& from, const NumberRange& to) {
  constexpr float kLow = -2147483648.0f, kHigh = 2147483520.0f;  // the floats within 32 bits
  const auto step =
      static_cast<float>(static_cast<double>(from.max - from.min) / (kIntegers<T> - 1));
  const float min = from.min == from.max ? from.min : std::round(from.min / step) * step;
  const float origin = min - static_cast<float>(kLowest<T>) * step;
  const auto scale =
      to.min == to.max
          ? 0.0f
          : static_cast<float>((kIntegers<qint32> - 1) / static_cast<double>(to.max - to.min));
  const float offset = std::round(to.min * scale) - kLow;
  return MakeByteLookup<T>([&](int64_t q) {
    const float x = origin + static_cast<float>(q) * step;
    return ToInt64(std::clamp(std::round(x * scale) - offset, kLow, kHigh));
  });
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
  const ByteLookup values = RequantizeInFloat<T>(range_x, range);
  ByteLookup biases = RequantizeInFloat<T>(range_bias, range);
  for (int32_t& bias : biases) bias = WrappingAdd(bias, ZeroPoint<qint32>(range));
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
  const T* const from = x.data<T>();
  T* const to = out->data<T>();
  c.pool().ParallelFor(x.num_elements(), 0.5, [=](int64_t begin, int64_t end) {
    ForEachInBlocks(end - begin, [=](int64_t i) {
      to[begin + i].value = std::min(std::max(from[begin + i].value, low), high);
    });
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
