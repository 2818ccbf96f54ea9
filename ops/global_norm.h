#ifndef WEIR_OPS_GLOBAL_NORM_H_
#define WEIR_OPS_GLOBAL_NORM_H_

#include "weir/core/op.h"

namespace weir {

// Batch normalisation as the oldest graphs have it; new ones cannot hold it. Part of AddNnOps.
void AddGlobalNormOps(OpRegistry* ops);

}  // namespace weir

#endif  // WEIR_OPS_GLOBAL_NORM_H_
