#include "weir/tools/ckpt/convert_elements.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace weir::tools {

namespace {

// An 8-bit float: a sign, an exponent and a mantissa. Those with "uz" have one NaN, the encoding of
// the negative zero; e4m3fn has NaN in place of its largest numbers; e5m2 is as IEEE 754 has it.
struct Float8Format {
  DataType dtype;
  int mantissa_bits, bias;
};
constexpr Float8Format kFloat8Formats[] = {{DT_FLOAT8_E5M2, 2, 15},
                                           {DT_FLOAT8_E4M3FN, 3, 7},
                                           {DT_FLOAT8_E4M3FNUZ, 3, 8},
                                           {DT_FLOAT8_E4M3B11FNUZ, 3, 11},
                                           {DT_FLOAT8_E5M2FNUZ, 2, 16}};

float Float8Value(const Float8Format& format, uint8_t bits) {
  const float sign = (bits & 0x80) != 0 ? -1.f : 1.f;
  const int mantissa = bits & ((1 << format.mantissa_bits) - 1);
  const int exponent = (bits & 0x7f) >> format.mantissa_bits;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr int kLargestExponent = 31;  // of e5m2
  if (format.dtype == DT_FLOAT8_E5M2 && exponent == kLargestExponent)
    return mantissa != 0 ? kNan : sign * std::numeric_limits<float>::infinity();
  if (format.dtype == DT_FLOAT8_E4M3FN && (bits & 0x7f) == 0x7f) return kNan;
  const bool is_uz = format.dtype != DT_FLOAT8_E5M2 && format.dtype != DT_FLOAT8_E4M3FN;
  if (is_uz && bits == 0x80) return kNan;
  const int whole = exponent == 0 ? mantissa : mantissa | 1 << format.mantissa_bits;
  const int power = (exponent == 0 ? 1 : exponent) - format.bias - format.mantissa_bits;
  return sign * std::ldexp(static_cast<float>(whole), power);
}

bool ConvertFloat8(DataType from, const char* in, DataType to, char* out, size_t count) {
  for (const Float8Format& format : kFloat8Formats) {
    if (format.dtype != from || to != DT_HALF) continue;
    half table[256];
    for (int i = 0; i < 256; ++i) table[i] = half(Float8Value(format, static_cast<uint8_t>(i)));
    auto* const to_half = reinterpret_cast<half*>(out);
    for (size_t i = 0; i < count; ++i) to_half[i] = table[static_cast<uint8_t>(in[i])];
    return true;
  }
  return false;
}

// Returns the index of the first value that overflows, or -1.
template <class From, class To>
int64_t ConvertFloats(const From* in, To* out, size_t count) {
  int64_t first = -1;
  for (size_t i = 0; i < count; ++i) {
    using Wide = std::conditional_t<std::is_same_v<From, double>, double, float>;
    const Wide value = in[i];
    out[i] = static_cast<To>(value);
    if constexpr (sizeof(To) <= sizeof(From)) {
      if (first < 0 && std::isinf(static_cast<Wide>(out[i])) && !std::isinf(value))
        first = static_cast<int64_t>(i);
    }
  }
  return first;
}

}  // namespace

DataType WiderType(DataType dtype) {
  switch (dtype) {
    case DT_QINT8:
    case DT_INT4:
      return DT_INT8;
    case DT_QUINT8:
    case DT_UINT4:
    case DT_BOOL:
      return DT_UINT8;
    case DT_QINT16:
    case DT_UINT8:
    case DT_INT8:
      return DT_INT16;
    case DT_QUINT16:
      return DT_UINT16;
    case DT_QINT32:
    case DT_UINT16:
    case DT_INT16:
      return DT_INT32;
    case DT_UINT32:
    case DT_INT32:
      return DT_INT64;
    case DT_HALF:
    case DT_BFLOAT16:
      return DT_FLOAT;
    case DT_FLOAT8_E5M2:
    case DT_FLOAT8_E4M3FN:
    case DT_FLOAT8_E4M3FNUZ:
    case DT_FLOAT8_E4M3B11FNUZ:
    case DT_FLOAT8_E5M2FNUZ:
      return DT_HALF;
    default:
      return DT_INVALID;
  }
}

bool CanConvert(DataType from, DataType to) {
  if (IsFloating(from) && IsFloating(to)) return true;
  for (DataType wider = from; wider != DT_INVALID; wider = WiderType(wider)) {
    if (wider == to) return true;
  }
  return false;
}

int64_t ConvertElements(DataType from, const char* in, DataType to, char* out, size_t count) {
  // A quantized or 4-bit integer has the bits of the integer that is wider than it.
  if (from != DT_BOOL && !IsInteger(from) && ElementSize(from) == ElementSize(to) &&
      WiderType(from) == to) {
    if (count > 0) std::memcpy(out, in, count * ElementSize(to));
    return -1;
  }
  if (ConvertFloat8(from, in, to, out, count)) return -1;
  int64_t first = -1;
  DispatchType(from, Floats{}, [&]<class From>() {
    DispatchType(to, Floats{}, [&]<class To>() {
      first = ConvertFloats(reinterpret_cast<const From*>(in), reinterpret_cast<To*>(out), count);
    });
  });
  DispatchType(from, JoinLists<Integers, List<bool>>{}, [&]<class From>() {
    DispatchType(to, Integers{}, [&]<class To>() {
      const auto* const values = reinterpret_cast<const From*>(in);
      for (size_t i = 0; i < count; ++i) reinterpret_cast<To*>(out)[i] = static_cast<To>(values[i]);
    });
  });
  return first;
}

void ToDoubles(DataType from, const char* in, double* out, size_t count) {
  const bool known = DispatchType(from, JoinLists<Numbers, List<bool>>{}, [&]<class T>() {
    const auto* const values = reinterpret_cast<const T*>(in);
    for (size_t i = 0; i < count; ++i) {
      if constexpr (kContains<T, Complexes>) {
        out[i] = std::abs(values[i]);
      } else if constexpr (kContains<T, NarrowFloats>) {
        out[i] = static_cast<float>(values[i]);
      } else {
        out[i] = static_cast<double>(values[i]);
      }
    }
  });
  if (known) return;
  const DataType wider = WiderType(from);
  std::vector<char> wide(count * ElementSize(wider));
  ConvertElements(from, in, wider, wide.data(), count);
  ToDoubles(wider, wide.data(), out, count);
}

}  // namespace weir::tools
