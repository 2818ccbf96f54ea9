#ifndef WEIR_OPS_ARRAY_INPLACE_H_
#define WEIR_OPS_ARRAY_INPLACE_H_

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"

namespace WEIR_API weir {

// Return x with rows i (a vector; negative indices count from the end) set to v, incremented by v,
// or decremented by v. The result may share x's buffer if no other node needs it.
Output InplaceUpdate(Output x, Output i, Output v, absl::string_view name = {});
Output InplaceAdd(Output x, Output i, Output v, absl::string_view name = {});
Output InplaceSub(Output x, Output i, Output v, absl::string_view name = {});

// Stacks values of one static shape.
Output ParallelStack(const Outputs& values, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_ARRAY_INPLACE_H_
