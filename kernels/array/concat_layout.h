#ifndef WEIR_KERNELS_ARRAY_CONCAT_LAYOUT_H_
#define WEIR_KERNELS_ARRAY_CONCAT_LAYOUT_H_

#include <vector>

#include "weir/core/runtime/kernel.h"

namespace weir {

// Tensors concatenated along an axis, as matrices: each row of the result consists of the
// corresponding row of each part.
struct ConcatLayout {
  Shape shape;
  int64_t rows = 0, row = 0;    // number of rows, and elements per row
  std::vector<int64_t> widths;  // elements per row of each part

  // Returns the layout of inputs [first, first + n) along the axis given by input `axis_input`.
  // INVALID_ARGUMENT with TensorFlow's message if their shapes do not match.
  static absl::StatusOr<ConcatLayout> Of(const KernelContext& c, int first, int n, int axis_input);
};

// Reshape: output 0 has the elements of input 0 in the shape given by input 1, where one dimension
// may be -1 and is then inferred.
absl::Status RunReshape(KernelContext& c);  // shape_ops.cc

}  // namespace weir

#endif  // WEIR_KERNELS_ARRAY_CONCAT_LAYOUT_H_
