#ifndef WEIR_OPS_TRAIN_SLOTS_H_
#define WEIR_OPS_TRAIN_SLOTS_H_

#include "weir/core/tensor/api.h"
#include "weir/ops/framework/variable.h"

namespace WEIR_API weir {

// Creates a slot variable, which belongs to another variable: an optimizer's state, a moving
// average. It is named "<primary>/<name>", made unique (in the current variable scope, regardless
// of the name scope). It is of the primary's kind, colocated with it and not trainable.
// `initializer` is called with the primary's shape, or is a tensor. A slot of a part of a
// partitioned variable is also saved as such a part.
Variable CreateSlot(const Variable& primary, absl::string_view name,
                    const Initializer& initializer);

}  // namespace weir

#endif  // WEIR_OPS_TRAIN_SLOTS_H_
