#ifndef WEIR_OPS_SLOTS_H_
#define WEIR_OPS_SLOTS_H_

#include "weir/ops/variable.h"

namespace weir {

// A variable that belongs to another: an optimizer's state, a moving average. It is named
// "<primary>/<name>", made unique (in the current variable scope, whatever the name scope is), is
// of the primary's kind, placed with it and not trainable. `initializer` gets the primary's shape,
// or is a tensor. A slot of a part of a partitioned variable is saved as such a part too.
Variable CreateSlot(const Variable& primary, absl::string_view name,
                    const Initializer& initializer);

}  // namespace weir

#endif  // WEIR_OPS_SLOTS_H_
