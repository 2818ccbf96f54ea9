#ifndef WEIR_KERNELS_ARRAY_FILL_SHAPES_H_
#define WEIR_KERNELS_ARRAY_FILL_SHAPES_H_

#include "weir/core/runtime/kernel.h"

// Shape computations of ops that fill tensors, for all devices.
namespace weir {

// Returns the result shape of Fill. INVALID_ARGUMENT if an argument is invalid.
absl::StatusOr<Shape> ShapeOfFill(const KernelContext& c);

// OneHot: for each of `outer` x `inner` indices, `depth` elements with stride `inner`.
struct OneHotLayout {
  Shape out;
  int64_t outer = 1, depth = 0, inner = 1;
};
// `axis` is the op's attribute. INVALID_ARGUMENT if an argument is invalid.
absl::StatusOr<OneHotLayout> MakeOneHotLayout(const KernelContext& c, int64_t axis);

}  // namespace weir

#endif  // WEIR_KERNELS_ARRAY_FILL_SHAPES_H_
