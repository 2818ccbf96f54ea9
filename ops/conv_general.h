#ifndef WEIR_OPS_CONV_GENERAL_H_
#define WEIR_OPS_CONV_GENERAL_H_

#include "weir/ops/window.h"

namespace weir {

// The attributes of a node of op Conv, which is Conv2D or Conv3D as its strides have 4 or 5
// elements, with any number of batch dimensions. INVALID_ARGUMENT, or UNIMPLEMENTED for groups.
struct GeneralConvAttributes {
  ConvAttributes conv;     // for the input with its batch dimensions made one
  int64_t batch_dims = 1;  // of the input

  static absl::StatusOr<GeneralConvAttributes> Read(const Node& node);
  // The input's shape with one batch dimension. INVALID_ARGUMENT if the rank is wrong. Unknown
  // dimensions stay unknown.
  absl::StatusOr<Shape> WithOneBatchDim(const Shape& input) const;
  // The batch dimensions of `input`, then the rest of a result with one.
  Shape WithAllBatchDims(const Shape& input, const Shape& result) const;
};

}  // namespace weir

#endif  // WEIR_OPS_CONV_GENERAL_H_
