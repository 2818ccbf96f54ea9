#ifndef WEIR_TOOLS_LIB_COMPARE_H_
#define WEIR_TOOLS_LIB_COMPARE_H_

#include <string>

#include "weir/core/tensor/tensor.h"

namespace weir::tools {

// |got - want| <= atol + rtol * |want|, with each tolerance at least 2e-3 for half and 1.6e-2 for
// bfloat16. An infinity equals only itself. NaN equals NaN.
struct Tolerance {
  double rtol = 1e-5, atol = 1e-6;
};

// Returns an empty string if `got` matches, otherwise a sentence: another type or shape, or how
// many elements differ, the first one and the greatest difference. Integers, booleans and strings
// must be equal exactly, except for zero bytes that the recording of a scalar string lost at its
// end. A quantized `got` is compared as plain integers.
std::string CompareTensors(const Tensor& got, const Tensor& want, const Tolerance& tolerance);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_COMPARE_H_
