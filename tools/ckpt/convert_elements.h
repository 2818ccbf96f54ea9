#ifndef WEIR_TOOLS_CKPT_CONVERT_ELEMENTS_H_
#define WEIR_TOOLS_CKPT_CONVERT_ELEMENTS_H_

#include <cstddef>
#include <cstdint>

#include "weir/core/tensor/dtype.h"
#include "weir/core/tensor/status.h"

// Conversions between element types, for arrays in memory.
namespace weir::tools {

// Returns the smallest type to which every value of `dtype` can be converted without loss, and that
// more formats have: int8 for qint8, float for bfloat16. DT_INVALID if there is none.
DataType WiderType(DataType dtype);

// Whether ConvertElements knows a conversion: between floating-point types, and along WiderType.
bool CanConvert(DataType from, DataType to);

// Converts `count` elements; floating-point values are rounded to nearest even. Returns the index
// of the first element whose finite value becomes infinite, or -1. `out` does not overlap `in`.
int64_t ConvertElements(DataType from, const char* in, DataType to, char* out, size_t count);

// Converts `count` elements of any plain type to doubles, for statistics: 64-bit integers are
// rounded, and a complex number becomes its magnitude.
void ToDoubles(DataType from, const char* in, double* out, size_t count);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_CONVERT_ELEMENTS_H_
