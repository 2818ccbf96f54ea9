#include "weir/rpc/models/json_store.h"

#include <cmath>
#include <limits>
#include <utility>

namespace weir::rpc {

namespace {

absl::Status StoreInteger(const JsonScalar& value, DataType dtype, int64_t min, uint64_t max,
                          Tensor* tensor, int64_t at) {
  const bool fits = value.kind == JsonScalar::Kind::kUint  ? value.uint_value <= max
                    : value.kind == JsonScalar::Kind::kInt ? value.int_value >= min
                                                           : false;
  if (!fits) return value.TypeError(dtype);
  tensor->SetIntAt(at, value.kind == JsonScalar::Kind::kInt
                           ? value.int_value
                           : static_cast<int64_t>(value.uint_value));
  return absl::OkStatus();
}

template <class T>
absl::Status StoreInteger(const JsonScalar& value, Tensor* tensor, int64_t at) {
  return StoreInteger(value, DataTypeOf<T>::value, std::numeric_limits<T>::min(),
                      std::numeric_limits<T>::max(), tensor, at);
}

template <class T>
absl::Status StoreFloat(const JsonScalar& value, Tensor* tensor, int64_t at) {
  const DataType dtype = DataTypeOf<T>::value;
  if (!value.is_number()) return value.TypeError(dtype);
  const double exact = value.AsDouble();
  const T stored = static_cast<T>(exact);
  const auto widened = static_cast<double>(stored);
  bool fits = !std::isfinite(exact) || std::isfinite(widened);
  // 2^64 is not a uint64, so that 2^64 - 1 would not be converted back.
  if (value.kind == JsonScalar::Kind::kUint)
    fits = fits && widened < 0x1p64 && static_cast<uint64_t>(widened) == value.uint_value;
  if (value.kind == JsonScalar::Kind::kInt)
    fits = fits && widened >= -0x1p63 && static_cast<int64_t>(widened) == value.int_value;
  if (!fits) {
    return InvalidArgument("Cannot convert JSON value: ", value.ToString(), " to ",
                           DataTypeName(dtype), " without loss of precision.");
  }
  tensor->data<T>()[at] = stored;
  return absl::OkStatus();
}

}  // namespace

bool IsInJson(DataType dtype) {
  return IsFloating(dtype) || IsInteger(dtype) || dtype == DT_BOOL || dtype == DT_STRING;
}

absl::Status StoreJson(JsonScalar& value, Tensor* tensor, int64_t at) {
  switch (tensor->dtype()) {
    case DT_FLOAT:
      return StoreFloat<float>(value, tensor, at);
    case DT_DOUBLE:
      return StoreFloat<double>(value, tensor, at);
    case DT_HALF:
      return StoreFloat<half>(value, tensor, at);
    case DT_BFLOAT16:
      return StoreFloat<bfloat16>(value, tensor, at);
    case DT_INT8:
      return StoreInteger<int8_t>(value, tensor, at);
    case DT_INT16:
      return StoreInteger<int16_t>(value, tensor, at);
    case DT_INT32:
      return StoreInteger<int32_t>(value, tensor, at);
    case DT_INT64:
      return StoreInteger<int64_t>(value, tensor, at);
    case DT_UINT8:
      return StoreInteger<uint8_t>(value, tensor, at);
    case DT_UINT16:
      return StoreInteger<uint16_t>(value, tensor, at);
    case DT_UINT32:
      return StoreInteger<uint32_t>(value, tensor, at);
    case DT_UINT64:
      return StoreInteger<uint64_t>(value, tensor, at);
    case DT_BOOL:
      if (value.kind != JsonScalar::Kind::kBool) return value.TypeError(DT_BOOL);
      tensor->data<bool>()[at] = value.boolean;
      return absl::OkStatus();
    case DT_STRING:
      if (!value.is_text()) return value.TypeError(DT_STRING);
      tensor->data<std::string>()[at] = std::move(value.text);
      return absl::OkStatus();
    default:
      return Unimplemented("Conversion of JSON Value: ", value.ToString(),
                           " to type: ", DataTypeName(tensor->dtype()));
  }
}

}  // namespace weir::rpc
