#ifndef WEIR_TOOLS_COMPARE_H_
#define WEIR_TOOLS_COMPARE_H_

#include <string>

#include "weir/core/tensor.h"

namespace weir::tools {

// |got - want| <= atol + rtol * |want|, at least 2e-3 for half and 1.6e-2 for bfloat16 (both
// kinds). Infinities are equal to themselves only, NaN equals NaN.
struct Tolerance {
  double rtol = 1e-5, atol = 1e-6;
};

// Empty if `got` is what was wanted, else a sentence: another type or shape, or how many elements
// differ, where first and by how much. Integers, booleans and strings are equal exactly, but for
// zero bytes that the record of a string scalar lost at its end. A quantized `got` is compared with
// its plain integers.
std::string CompareTensors(const Tensor& got, const Tensor& want, const Tolerance& tolerance);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_COMPARE_H_
