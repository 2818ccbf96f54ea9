#ifndef WEIR_OPS_BOOLEAN_MASK_H_
#define WEIR_OPS_BOOLEAN_MASK_H_

#include "weir/core/graph.h"

namespace weir {

// The elements of the leading dimensions where the mask, whose rank is static, is true:
// TensorFlow's boolean_mask.
Output BooleanMask(Output values, Output mask, absl::string_view name = "boolean_mask");

}  // namespace weir

#endif  // WEIR_OPS_BOOLEAN_MASK_H_
