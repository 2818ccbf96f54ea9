#ifndef WEIR_KERNELS_SUMMARIZE_H_
#define WEIR_KERNELS_SUMMARIZE_H_

#include <string>

#include "weir/core/tensor.h"

namespace weir {

// The first `limit` elements (negative: all) of a tensor on one line, the way TensorFlow's Assert
// and Print show them: "1 2 3..." for a vector or a scalar, "[1 2][3 4]" for a matrix.
std::string Summarize(const Tensor& t, int64_t limit);

}  // namespace weir

#endif  // WEIR_KERNELS_SUMMARIZE_H_
