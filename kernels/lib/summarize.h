#ifndef WEIR_KERNELS_LIB_SUMMARIZE_H_
#define WEIR_KERNELS_LIB_SUMMARIZE_H_

#include <string>

#include "weir/core/tensor/tensor.h"

namespace weir {

// Returns the first `limit` elements (negative: all) of a tensor on one line, as TensorFlow's
// Assert and Print show them: "1 2 3..." for a vector or a scalar, "[1 2][3 4]" for a matrix.
std::string Summarize(const Tensor& t, int64_t limit);

// Returns the first and last `edge` elements (negative: all) of every dimension, in NumPy's layout,
// as TensorFlow's print shows them: "[[0 1 ... 8 9]\n [10 11 ... 18 19]]". Strings are in quotes.
std::string SummarizeEdges(const Tensor& t, int64_t edge);

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_SUMMARIZE_H_
