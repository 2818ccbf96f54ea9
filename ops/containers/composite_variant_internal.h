#ifndef WEIR_OPS_CONTAINERS_COMPOSITE_VARIANT_INTERNAL_H_
#define WEIR_OPS_CONTAINERS_COMPOSITE_VARIANT_INTERNAL_H_

#include "weir/core/graph/op.h"

namespace weir {

// The part of AddTensorMapOps in composite_variant.cc.
void AddCompositeVariantOps(OpRegistry* ops);

}  // namespace weir

#endif  // WEIR_OPS_CONTAINERS_COMPOSITE_VARIANT_INTERNAL_H_
