#ifndef WEIR_OPS_INPLACE_H_
#define WEIR_OPS_INPLACE_H_

#include "weir/core/graph.h"

namespace weir {

// Rows i (a vector; counted from the end if negative) of x become v, or v is added or subtracted.
// The result may have x's memory, where nothing else needs it.
Output InplaceUpdate(Output x, Output i, Output v, absl::string_view name = {});
Output InplaceAdd(Output x, Output i, Output v, absl::string_view name = {});
Output InplaceSub(Output x, Output i, Output v, absl::string_view name = {});

// Stack for values of one static shape.
Output ParallelStack(const Outputs& values, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_INPLACE_H_
