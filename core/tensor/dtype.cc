#include "weir/core/tensor/dtype.h"

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weir/core/tensor/resource_handle.h"
#include "weir/core/tensor/variant.h"

namespace weir {

namespace {

struct TypeInfo {
  const char* name;
  size_t size;
};

// Indexed by DataType.
constexpr std::array<TypeInfo, DT_UINT4 + 1> kTypes = {{
    {"invalid", 0},
    {"float", sizeof(float)},
    {"double", sizeof(double)},
    {"int32", sizeof(int32_t)},
    {"uint8", sizeof(uint8_t)},
    {"int16", sizeof(int16_t)},
    {"int8", sizeof(int8_t)},
    {"string", sizeof(std::string)},
    {"complex64", sizeof(std::complex<float>)},
    {"int64", sizeof(int64_t)},
    {"bool", sizeof(bool)},
    {"qint8", sizeof(qint8)},
    {"quint8", sizeof(quint8)},
    {"qint32", sizeof(qint32)},
    {"bfloat16", sizeof(bfloat16)},
    {"qint16", sizeof(qint16)},
    {"quint16", sizeof(quint16)},
    {"uint16", sizeof(uint16_t)},
    {"complex128", sizeof(std::complex<double>)},
    {"half", sizeof(half)},
    {"resource", sizeof(ResourceHandle)},
    {"variant", sizeof(Variant)},
    {"uint32", sizeof(uint32_t)},
    {"uint64", sizeof(uint64_t)},
    {"float8_e5m2", sizeof(float8_e5m2)},
    {"float8_e4m3fn", sizeof(float8_e4m3fn)},
    {"float8_e4m3fnuz", sizeof(float8_e4m3fnuz)},
    {"float8_e4m3b11fnuz", sizeof(float8_e4m3b11fnuz)},
    {"float8_e5m2fnuz", sizeof(float8_e5m2fnuz)},
    {"int4", sizeof(int4)},
    {"uint4", sizeof(uint4)},
}};

}  // namespace

bool IsKnown(DataType t) {
  const DataType base = BaseType(t);
  return base > DT_INVALID && base < kTypes.size();
}

std::string DataTypeName(DataType t) {
  if (t == DT_INVALID) return kTypes[t].name;
  if (!IsKnown(t)) return absl::StrCat("unknown dtype enum (", static_cast<int>(t), ")");
  return absl::StrCat(kTypes[BaseType(t)].name, IsRef(t) ? "_ref" : "");
}

DataType DataTypeFromName(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  if (absl::ConsumePrefix(&name, "DT_")) {
    if (name != absl::AsciiStrToUpper(name)) return DT_INVALID;
    name = absl::string_view(lower).substr(3);
  }
  const bool is_ref = absl::ConsumeSuffix(&name, "_ref");
  // Signatures of plug-ins and other programs may have the names of Python and C++.
  if (name == "float32") name = "float";
  if (name == "float64") name = "double";
  if (name == "float16") name = "half";
  for (int t = DT_FLOAT; t < static_cast<int>(kTypes.size()); ++t) {
    if (name == kTypes[t].name) {
      return is_ref ? MakeRef(static_cast<DataType>(t)) : static_cast<DataType>(t);
    }
  }
  return DT_INVALID;
}

size_t ElementSize(DataType t) {
  const DataType base = BaseType(t);
  return base < kTypes.size() ? kTypes[base].size : 0;
}

}  // namespace weir
