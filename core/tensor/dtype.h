#ifndef WEIR_CORE_TENSOR_DTYPE_H_
#define WEIR_CORE_TENSOR_DTYPE_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"
#include "weir/core/tensor/api.h"
#include "weir/core/tensor/numeric_types.h"

// Element types. Values and names are those of TensorFlow's types.proto, so they are written to the
// wire unchanged.
namespace WEIR_API weir {

// Element types. Reference types follow (see kRefOffset).
enum DataType : uint8_t {
  DT_INVALID = 0,
  DT_FLOAT = 1,
  DT_DOUBLE = 2,
  DT_INT32 = 3,
  DT_UINT8 = 4,
  DT_INT16 = 5,
  DT_INT8 = 6,
  DT_STRING = 7,
  DT_COMPLEX64 = 8,
  DT_INT64 = 9,
  DT_BOOL = 10,
  DT_QINT8 = 11,
  DT_QUINT8 = 12,
  DT_QINT32 = 13,
  DT_BFLOAT16 = 14,
  DT_QINT16 = 15,
  DT_QUINT16 = 16,
  DT_UINT16 = 17,
  DT_COMPLEX128 = 18,
  DT_HALF = 19,
  DT_RESOURCE = 20,
  DT_VARIANT = 21,
  DT_UINT32 = 22,
  DT_UINT64 = 23,
  DT_FLOAT8_E5M2 = 24,
  DT_FLOAT8_E4M3FN = 25,
  DT_FLOAT8_E4M3FNUZ = 26,
  DT_FLOAT8_E4M3B11FNUZ = 27,
  DT_FLOAT8_E5M2FNUZ = 28,
  DT_INT4 = 29,
  DT_UINT4 = 30,
};

// A reference type is its base type plus 100 (`DT_FLOAT_REF` = 101). Only node inputs and outputs
// have reference types, tensors never do.
inline constexpr int kRefOffset = 100;
// Whether a type is a reference type, its base type (itself, if it is none), and its reference type
// (itself, if it is one). MakeRef and BaseType accept all types.
constexpr bool IsRef(DataType t) { return t > kRefOffset; }
constexpr DataType BaseType(DataType t) {
  return IsRef(t) ? static_cast<DataType>(t - kRefOffset) : t;
}
// Returns the reference type of a type; a reference type itself.
constexpr DataType MakeRef(DataType t) {
  return IsRef(t) ? t : static_cast<DataType>(t + kRefOffset);
}

// Returns "float", "int32", "float_ref": the short name used in signatures and messages.
std::string DataTypeName(DataType t);
// Parses short names ("float", "half", "float_ref") and wire names ("DT_FLOAT"). Returns DT_INVALID
// for anything else.
DataType DataTypeFromName(absl::string_view name);
// Returns true for the enumerators above and their reference types.
bool IsKnown(DataType t);

// Returns the size of one element in bytes; 0 for DT_INVALID and unknown values. The elements of
// strings, resources and variants are C++ objects.
size_t ElementSize(DataType t);
// Returns false for DT_STRING, DT_RESOURCE and DT_VARIANT, whose elements are C++ objects with
// constructors and destructors.
constexpr bool IsPlain(DataType t) {
  const DataType b = BaseType(t);
  return b != DT_STRING && b != DT_RESOURCE && b != DT_VARIANT && b != DT_INVALID;
}
// Whether a type, or the base type of a reference type, is real floating-point (but not one of the
// float8 types, which have no arithmetic).
constexpr bool IsFloating(DataType t) {
  const DataType b = BaseType(t);
  return b == DT_HALF || b == DT_BFLOAT16 || b == DT_FLOAT || b == DT_DOUBLE;
}
// Whether it is complex.
constexpr bool IsComplex(DataType t) {
  return BaseType(t) == DT_COMPLEX64 || BaseType(t) == DT_COMPLEX128;
}
// Whether it is an integer of 8 bits or more; quantized types, bool and the 4-bit integers are not.
constexpr bool IsInteger(DataType t) {
  switch (BaseType(t)) {
    case DT_INT8:
    case DT_INT16:
    case DT_INT32:
    case DT_INT64:
    case DT_UINT8:
    case DT_UINT16:
    case DT_UINT32:
    case DT_UINT64:
      return true;
    default:
      return false;
  }
}
// Whether it is one of the quantized types, "qint8" to "quint16".
constexpr bool IsQuantized(DataType t) {
  const DataType b = BaseType(t);
  return (b >= DT_QINT8 && b <= DT_QINT32) || b == DT_QINT16 || b == DT_QUINT16;
}

class ResourceHandle;  // core/runtime/resource.h
class Variant;         // core/tensor/variant.h

// Maps a C++ type to its dtype: DataTypeOf<float>::value == DT_FLOAT.
template <class T>
struct DataTypeOf;

// A list of C++ element types, for code that is instantiated for every member.
template <class... Ts>
struct List {};

// The base of the specializations below.
template <DataType kType>
struct DataTypeConstant {
  static constexpr DataType value = kType;  // the dtype
};
template <>
struct DataTypeOf<float> : DataTypeConstant<DT_FLOAT> {};
template <>
struct DataTypeOf<double> : DataTypeConstant<DT_DOUBLE> {};
template <>
struct DataTypeOf<int32_t> : DataTypeConstant<DT_INT32> {};
template <>
struct DataTypeOf<uint8_t> : DataTypeConstant<DT_UINT8> {};
template <>
struct DataTypeOf<int16_t> : DataTypeConstant<DT_INT16> {};
template <>
struct DataTypeOf<int8_t> : DataTypeConstant<DT_INT8> {};
template <>
struct DataTypeOf<std::string> : DataTypeConstant<DT_STRING> {};
template <>
struct DataTypeOf<std::complex<float>> : DataTypeConstant<DT_COMPLEX64> {};
template <>
struct DataTypeOf<int64_t> : DataTypeConstant<DT_INT64> {};
template <>
struct DataTypeOf<bool> : DataTypeConstant<DT_BOOL> {};
template <>
struct DataTypeOf<qint8> : DataTypeConstant<DT_QINT8> {};
template <>
struct DataTypeOf<quint8> : DataTypeConstant<DT_QUINT8> {};
template <>
struct DataTypeOf<qint32> : DataTypeConstant<DT_QINT32> {};
template <>
struct DataTypeOf<bfloat16> : DataTypeConstant<DT_BFLOAT16> {};
template <>
struct DataTypeOf<qint16> : DataTypeConstant<DT_QINT16> {};
template <>
struct DataTypeOf<quint16> : DataTypeConstant<DT_QUINT16> {};
template <>
struct DataTypeOf<uint16_t> : DataTypeConstant<DT_UINT16> {};
template <>
struct DataTypeOf<std::complex<double>> : DataTypeConstant<DT_COMPLEX128> {};
template <>
struct DataTypeOf<half> : DataTypeConstant<DT_HALF> {};
template <>
struct DataTypeOf<ResourceHandle> : DataTypeConstant<DT_RESOURCE> {};
template <>
struct DataTypeOf<Variant> : DataTypeConstant<DT_VARIANT> {};
template <>
struct DataTypeOf<uint32_t> : DataTypeConstant<DT_UINT32> {};
template <>
struct DataTypeOf<uint64_t> : DataTypeConstant<DT_UINT64> {};
template <>
struct DataTypeOf<float8_e5m2> : DataTypeConstant<DT_FLOAT8_E5M2> {};
template <>
struct DataTypeOf<float8_e4m3fn> : DataTypeConstant<DT_FLOAT8_E4M3FN> {};
template <>
struct DataTypeOf<float8_e4m3fnuz> : DataTypeConstant<DT_FLOAT8_E4M3FNUZ> {};
template <>
struct DataTypeOf<float8_e4m3b11fnuz> : DataTypeConstant<DT_FLOAT8_E4M3B11FNUZ> {};
template <>
struct DataTypeOf<float8_e5m2fnuz> : DataTypeConstant<DT_FLOAT8_E5M2FNUZ> {};
template <>
struct DataTypeOf<int4> : DataTypeConstant<DT_INT4> {};
template <>
struct DataTypeOf<uint4> : DataTypeConstant<DT_UINT4> {};

namespace internal {
template <class... Lists>
struct JoinedLists;
template <class... Ts>
struct JoinedLists<List<Ts...>> {
  using type = List<Ts...>;
};
template <class... As, class... Bs, class... Lists>
struct JoinedLists<List<As...>, List<Bs...>, Lists...> : JoinedLists<List<As..., Bs...>, Lists...> {
};
}  // namespace internal

// The members of several lists.
template <class... Lists>
using JoinLists = typename internal::JoinedLists<Lists...>::type;

// Whether a list contains a type.
template <class T, class Types>
inline constexpr bool kContains = false;
template <class T, class... Ts>
inline constexpr bool kContains<T, List<Ts...>> = (std::is_same_v<T, Ts> || ...);

// The types of kernels. A new type enters one of the lists without JoinLists.
using NarrowFloats = List<half, bfloat16>;  // computed in float
using Floats = JoinLists<NarrowFloats, List<float, double>>;
using Complexes = List<std::complex<float>, std::complex<double>>;
using SignedIntegers = List<int8_t, int16_t, int32_t, int64_t>;
using UnsignedIntegers = List<uint8_t, uint16_t, uint32_t, uint64_t>;
using Integers = JoinLists<SignedIntegers, UnsignedIntegers>;
using RealNumbers = JoinLists<Floats, Integers>;
using Numbers = JoinLists<RealNumbers, Complexes>;
using QuantizedNumbers = List<qint8, quint8, qint16, quint16, qint32>;

// Calls f.template operator()<T>() for the member T of `List<Ts...>` whose dtype is `t`. Returns
// false if there is none.
//   DispatchType(t, Floats{}, [&]<class T>() { ... });
template <class... Ts, class F>
bool DispatchType(DataType t, List<Ts...>, F&& f) {
  return ((DataTypeOf<Ts>::value == t ? (f.template operator()<Ts>(), true) : false) || ...);
}

// Sixteen bytes that kernels move as one element.
struct Bytes16 {
  uint64_t lo, hi;  // the low and the high half
};
// Calls f.operator()<U>() with an unsigned integer U of `bytes` bytes (or Bytes16), for kernels
// that only move plain elements. Returns false for sizes other than 1, 2, 4, 8, 16.
template <class F>
bool DispatchSize(size_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      f.template operator()<uint8_t>();
      return true;
    case 2:
      f.template operator()<uint16_t>();
      return true;
    case 4:
      f.template operator()<uint32_t>();
      return true;
    case 8:
      f.template operator()<uint64_t>();
      return true;
    case 16:
      f.template operator()<Bytes16>();
      return true;
    default:
      return false;
  }
}

// A list of element types, such as those of the components of a queue.
using DataTypes = std::vector<DataType>;

// Returns the dtypes of a list's members: for (const DataType t : DataTypesOf(Floats())).
template <class... Ts>
DataTypes DataTypesOf(List<Ts...>) {
  return {DataTypeOf<Ts>::value...};
}

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_DTYPE_H_
