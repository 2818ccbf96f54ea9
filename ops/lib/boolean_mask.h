#ifndef WEIR_OPS_LIB_BOOLEAN_MASK_H_
#define WEIR_OPS_LIB_BOOLEAN_MASK_H_

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"

namespace WEIR_API weir {

// Returns the elements of the leading dimensions where `mask` is true: TensorFlow's boolean_mask.
// The rank of the mask must be static.
Output BooleanMask(Output values, Output mask, absl::string_view name = "boolean_mask");

}  // namespace weir

#endif  // WEIR_OPS_LIB_BOOLEAN_MASK_H_
