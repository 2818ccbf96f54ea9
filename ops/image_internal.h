#ifndef WEIR_OPS_IMAGE_INTERNAL_H_
#define WEIR_OPS_IMAGE_INTERNAL_H_

#include "weir/core/gradient.h"
#include "weir/core/op.h"
#include "weir/core/shape_context.h"

// What the sources of the image family share.
namespace weir {

// Output 0 is [batch, height, width, channels], with {height, width} the value of input `size`.
absl::Status SizedImageShape(ShapeContext& c, int size, int64_t batch, int64_t channels);
// Fails unless dimension `i` of the shape, if it is known, is this.
absl::Status CheckDim(const Shape& shape, int i, int64_t want);

Grads RgbToHsvGradient(GradContext& c);  // image_color_gradient.cc

}  // namespace weir

#endif  // WEIR_OPS_IMAGE_INTERNAL_H_
