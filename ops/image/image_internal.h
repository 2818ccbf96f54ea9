#ifndef WEIR_OPS_IMAGE_IMAGE_INTERNAL_H_
#define WEIR_OPS_IMAGE_IMAGE_INTERNAL_H_

#include "weir/core/graph/op.h"
#include "weir/core/graph/shape_context.h"

// Helpers shared by the image op family.
namespace weir {

// Sets output 0 to [batch, height, width, channels], where {height, width} is the value of input
// `size`.
absl::Status SizedImageShape(ShapeContext& c, int size, int64_t batch, int64_t channels);
// Returns an error if dimension `i` of the shape is known and has a different size.
absl::Status CheckDim(const Shape& shape, int i, int64_t want);

}  // namespace weir

#endif  // WEIR_OPS_IMAGE_IMAGE_INTERNAL_H_
