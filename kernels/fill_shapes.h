#ifndef WEIR_KERNELS_FILL_SHAPES_H_
#define WEIR_KERNELS_FILL_SHAPES_H_

#include "weir/core/kernel.h"

// What ops that fill tensors make of their arguments, on any device.
namespace weir {

// The shape that Fill makes. INVALID_ARGUMENT if an argument does not fit.
absl::StatusOr<Shape> ShapeOfFill(const KernelContext& c);

// OneHot: for each of `outer` x `inner` indices, `depth` elements that are `inner` apart.
struct OneHotLayout {
  Shape out;
  int64_t outer = 1, depth = 0, inner = 1;
};
// `axis` is the op's attribute. INVALID_ARGUMENT if an argument does not fit.
absl::StatusOr<OneHotLayout> LayOutOneHot(const KernelContext& c, int64_t axis);

}  // namespace weir

#endif  // WEIR_KERNELS_FILL_SHAPES_H_
