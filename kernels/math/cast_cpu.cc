#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/narrow_floats.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/math/cast.h"

// Conversions between all numeric types. 8-bit and 16-bit floats are converted through float, 4-bit
// integers through 8-bit integers, so that the full matrix of conversions covers 13 types.
namespace weir {

namespace {

template <class From, class To>
void CastLoop(const void* from, void* to, int64_t n) {
  const From* x = static_cast<const From*>(from);
  To* y = static_cast<To*>(to);
  ForEachInBlocks(n, [&](int64_t i) { y[i] = Convert<To>(x[i]); });
}

template <class N>
void WidenLoop(const void* from, void* to, int64_t n) {
  Widen(static_cast<const N*>(from), static_cast<float*>(to), n);
}
template <class N>
void NarrowLoop(const void* from, void* to, int64_t n) {
  Narrow(static_cast<const float*>(from), static_cast<N*>(to), n);
}

// ---- types of less than 16 bits

// The encoding of an 8-bit float: sign, exponent, `kMantissa` bits of mantissa. `kOverflow` is the
// code of what exceeds the largest number: infinity, or NaN if there is no infinity.
template <int kMantissa, int kOverflow>
struct Float8Encoding {
  static constexpr int kBias = (1 << (6 - kMantissa)) - 1;
  static constexpr int kNan = 0x7e + kMantissa % 2;  // a quiet one, or the only one

  static float Decode(uint8_t code) {
    const int magnitude = code & 0x7f, exponent = magnitude >> kMantissa;
    const int digits = magnitude & ((1 << kMantissa) - 1);
    float x = std::numeric_limits<float>::quiet_NaN();
    if (magnitude < kOverflow) {
      x = exponent == 0 ? std::ldexp(static_cast<float>(digits), 1 - kBias - kMantissa)
                        : std::ldexp(static_cast<float>(digits | 1 << kMantissa),
                                     exponent - kBias - kMantissa);
    } else if (magnitude == kOverflow && kOverflow != kNan) {
      x = std::numeric_limits<float>::infinity();
    }
    return code & 0x80 ? -x : x;
  }
  // Rounds to nearest even.
  static uint8_t Encode(float x) {
    const int sign = std::signbit(x) ? 0x80 : 0;
    if (std::isnan(x)) return static_cast<uint8_t>(sign | kNan);
    x = std::abs(x);
    if (std::isinf(x)) return static_cast<uint8_t>(sign | kOverflow);
    if (x == 0) return static_cast<uint8_t>(sign);
    int exponent;  // x is in [2^(exponent - 1), 2^exponent)
    std::frexp(x, &exponent);
    exponent = std::max(exponent, 2 - kBias);  // subnormal numbers have the smallest normal step
    const float steps = std::nearbyint(std::ldexp(x, kMantissa + 1 - exponent));
    // A sum, so that a mantissa that is rounded up to 2 carries into the exponent.
    const float code = std::ldexp(static_cast<float>(exponent - 2 + kBias), kMantissa) + steps;
    return static_cast<uint8_t>(sign | static_cast<int>(std::min<float>(code, kOverflow)));
  }
};

template <class T, class Encoding>
struct SmallFloat {
  using Wide = float;
  static float Widen(T x) { return Encoding::Decode(x.value); }
  static T Narrow(float x) { return {Encoding::Encode(x)}; }
};
template <class T>
struct SmallType;
template <>
struct SmallType<float8_e5m2> : SmallFloat<float8_e5m2, Float8Encoding<2, 0x7c>> {};
template <>
struct SmallType<float8_e4m3fn> : SmallFloat<float8_e4m3fn, Float8Encoding<3, 0x7f>> {};
// 4-bit integers keep the low bits.
template <>
struct SmallType<int4> {
  using Wide = int8_t;
  static int8_t Widen(int4 x) { return static_cast<int8_t>(((x.value & 15) ^ 8) - 8); }
  static int4 Narrow(int8_t x) { return {Widen(int4{x})}; }
};
template <>
struct SmallType<uint4> {
  using Wide = uint8_t;
  static uint8_t Widen(uint4 x) { return x.value & 15; }
  static uint4 Narrow(uint8_t x) { return {static_cast<uint8_t>(x & 15)}; }
};
using Floats8 = List<float8_e5m2, float8_e4m3fn>;
using Integers4 = List<int4, uint4>;
using SmallTypes = JoinLists<Floats8, Integers4>;

template <class N>
void WidenSmall(const void* from, void* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    static_cast<typename SmallType<N>::Wide*>(to)[i] =
        SmallType<N>::Widen(static_cast<const N*>(from)[i]);
  }
}
template <class N>
void NarrowSmall(const void* from, void* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    static_cast<N*>(to)[i] =
        SmallType<N>::Narrow(static_cast<const typename SmallType<N>::Wide*>(from)[i]);
  }
}

bool IsIn(DataType t, auto list) {
  return DispatchType(t, list, []<class T>() {});
}
// TensorFlow has conversions to 8-bit floats only from floats, and between 4-bit integers and other
// integers.
bool IsConversion(DataType from, DataType to) {
  if (IsIn(to, Floats8())) return IsFloating(from) || IsIn(from, Floats8());
  const auto is_integer = [](DataType t) {
    return IsInteger(t) || IsQuantized(t) || IsIn(t, Integers4());
  };
  return (!IsIn(from, Integers4()) && !IsIn(to, Integers4())) ||
         (is_integer(from) && is_integer(to));
}

// ---- the matrix of conversions

using CastTypes = List<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
                       uint32_t, uint64_t, bool, std::complex<float>, std::complex<double>>;

template <class From, class... Tos>
CastFn LoopFrom(DataType to, List<Tos...>) {
  CastFn fn = nullptr;
  ((DataTypeOf<Tos>::value == to ? void(fn = CastLoop<From, Tos>) : void()), ...);
  return fn;
}
template <class... Froms>
CastFn FindLoop(DataType from, DataType to, List<Froms...> all) {
  CastFn fn = nullptr;
  ((DataTypeOf<Froms>::value == from ? void(fn = LoopFrom<Froms>(to, all)) : void()), ...);
  return fn;
}

// Clears the low mantissa bits that the narrower type lacks, so that the subsequent rounding is
// exact (truncation).
void Truncate(DataType from, int dropped_bits, void* data, int64_t n) {
  if (from == DT_FLOAT) {
    const uint32_t mask = ~((uint32_t{1} << dropped_bits) - 1);
    for (int64_t i = 0; i < n; ++i) {
      float& x = static_cast<float*>(data)[i];
      x = std::bit_cast<float>(std::bit_cast<uint32_t>(x) & mask);
    }
  } else {
    const uint64_t mask = ~((uint64_t{1} << dropped_bits) - 1);
    for (int64_t i = 0; i < n; ++i) {
      double& x = static_cast<double*>(data)[i];
      x = std::bit_cast<double>(std::bit_cast<uint64_t>(x) & mask);
    }
  }
}

// Up to three stages: widen, convert (after truncation), narrow. Intermediate values stay in the
// cache in tiles.
struct Caster {
  DataType from, to;
  CastFn widen = nullptr, convert = nullptr, narrow = nullptr;
  int dropped_bits = 0;

  void Run(const char* x, char* y, int64_t n) const {
    if (widen == nullptr && narrow == nullptr && dropped_bits == 0) return convert(x, y, n);
    constexpr int64_t kTile = 512;
    alignas(64) char wide[kTile * 16];
    alignas(64) char converted[kTile * 16];
    const size_t in = ElementSize(from), out = ElementSize(to);
    for (int64_t i = 0; i < n; i += kTile) {
      const int64_t m = std::min(kTile, n - i);
      const void* source = x + i * in;
      if (widen != nullptr) {
        widen(source, wide, m);
        source = wide;
      }
      if (dropped_bits > 0) {
        if (source != wide) std::memcpy(wide, source, m * in);
        source = wide;
        Truncate(from, dropped_bits, wide, m);
      }
      void* const target = narrow == nullptr ? y + i * out : converted;
      convert(source, target, m);
      if (narrow != nullptr) narrow(converted, y + i * out, m);
    }
  }

  void Run(ThreadPool& pool, const Tensor& x, Tensor* out) const {
    const char* const source = static_cast<const char*>(x.raw());
    char* const target = static_cast<char*>(out->raw());
    const size_t in = ElementSize(from), size = ElementSize(to);
    pool.ParallelFor(
        x.num_elements(), 0.4,
        [&](int64_t b, int64_t e) { Run(source + b * in, target + b * size, e - b); }, 64);
  }

  absl::Status operator()(KernelContext& c) const {
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, c.input(0).shape()));
    Run(c.pool(), c.input(0), out);
    return absl::OkStatus();
  }
};

// Returns the type that defines the arithmetic of `t`: an integer for quantized types.
DataType WideType(DataType t) {
  switch (t) {
    case DT_HALF:
    case DT_BFLOAT16:
    case DT_FLOAT8_E5M2:
    case DT_FLOAT8_E4M3FN:
      return DT_FLOAT;
    case DT_INT4:
    case DT_QINT8:
      return DT_INT8;
    case DT_UINT4:
    case DT_QUINT8:
      return DT_UINT8;
    case DT_QINT16:
      return DT_INT16;
    case DT_QUINT16:
      return DT_UINT16;
    case DT_QINT32:
      return DT_INT32;
    default:
      return t;
  }
}

absl::StatusOr<Caster> MakeCaster(DataType from, DataType to) {
  Caster cast{from, to};
  cast.convert = FindCast(WideType(from), WideType(to));
  if (cast.convert == nullptr || !IsConversion(from, to)) {
    return Unimplemented("Cast ", DataTypeName(from), " to ", DataTypeName(to),
                         " is not supported");
  }
  DispatchType(from, NarrowFloats(), [&]<class T>() { cast.widen = WidenLoop<T>; });
  DispatchType(to, NarrowFloats(), [&]<class T>() { cast.narrow = NarrowLoop<T>; });
  DispatchType(from, SmallTypes(), [&]<class T>() { cast.widen = WidenSmall<T>; });
  DispatchType(to, SmallTypes(), [&]<class T>() { cast.narrow = NarrowSmall<T>; });
  return cast;
}

absl::StatusOr<Kernel> MakeCast(const KernelInit& init) {
  const DataType from = init.attr<DataType>("SrcT"), to = init.attr<DataType>("DstT");
  if (from == to) {
    return Kernel([](KernelContext& c) -> absl::Status {
      c.SetOutput(0, c.input(0));
      return absl::OkStatus();
    });
  }
  WEIR_ASSIGN_OR_RETURN(Caster cast, MakeCaster(from, to));
  if (init.attr<bool>("Truncate") && MantissaBits(cast.to) > 0 &&
      (cast.from == DT_FLOAT || cast.from == DT_DOUBLE)) {
    cast.dropped_bits = std::max(0, MantissaBits(cast.from) - MantissaBits(cast.to));
  }
  return Kernel(cast);
}

}  // namespace

CastFn FindCast(DataType from, DataType to) { return FindLoop(from, to, CastTypes{}); }

absl::Status ConvertElements(ThreadPool& pool, const Tensor& from, Tensor* to) {
  WEIR_ASSIGN_OR_RETURN(const Caster cast, MakeCaster(from.dtype(), to->dtype()));
  cast.Run(pool, from, to);
  return absl::OkStatus();
}

void AddCastCpu(KernelRegistry* r) {
  for (int type = DT_FLOAT; type <= DT_UINT4; ++type) {
    const DataType t = static_cast<DataType>(type);
    // Equal types: forwards the input without a copy.
    r->Add("Cast", kCpu, TypeConstraints{{"SrcT", t}, {"DstT", t}}, MakeCast).Aliases({0});
  }
  r->Add("Cast", kCpu, MakeCast).InPlace({0});
}

}  // namespace weir
