#ifndef WEIR_KERNELS_CONCAT_LAYOUT_H_
#define WEIR_KERNELS_CONCAT_LAYOUT_H_

#include <vector>

#include "weir/core/kernel.h"

namespace weir {

// Tensors joined along an axis, as matrices: each row of the result is a row of each part, one
// after the other.
struct ConcatLayout {
  Shape shape;
  int64_t rows = 0, row = 0;    // how many, and elements in one
  std::vector<int64_t> widths;  // elements in a row of each part

  // Inputs [first, first + n) along the axis that input `axis_input` names. INVALID_ARGUMENT in
  // TensorFlow's words if they do not go together.
  static absl::StatusOr<ConcatLayout> Of(const KernelContext& c, int first, int n, int axis_input);
};

// Reshape: output 0 has the elements of input 0 in the shape that input 1 spells out, where one -1
// may stand for what follows.
absl::Status RunReshape(KernelContext& c);  // shape_ops.cc

}  // namespace weir

#endif  // WEIR_KERNELS_CONCAT_LAYOUT_H_
