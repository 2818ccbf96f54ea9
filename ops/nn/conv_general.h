#ifndef WEIR_OPS_NN_CONV_GENERAL_H_
#define WEIR_OPS_NN_CONV_GENERAL_H_

#include "weir/ops/lib/window.h"

namespace weir {

// The attributes of a node of op Conv with any number of batch dimensions. The op is a Conv2D or
// Conv3D, depending on whether its strides have 4 or 5 elements. INVALID_ARGUMENT on bad
// attributes, UNIMPLEMENTED for groups.
struct GeneralConvAttributes {
  ConvAttributes conv;     // for the input with its batch dimensions merged into one
  int64_t batch_dims = 1;  // of the input

  static absl::StatusOr<GeneralConvAttributes> Read(const Node& node);
  // Returns the input's shape with its batch dimensions merged into one. INVALID_ARGUMENT if the
  // rank is wrong. Unknown dimensions remain unknown.
  absl::StatusOr<Shape> WithOneBatchDim(const Shape& input) const;
  // Returns the batch dimensions of `input` followed by the other dimensions of `result`, which has
  // one batch dimension.
  Shape WithAllBatchDims(const Shape& input, const Shape& result) const;
};

}  // namespace weir

#endif  // WEIR_OPS_NN_CONV_GENERAL_H_
