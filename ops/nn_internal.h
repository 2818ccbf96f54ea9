#ifndef WEIR_OPS_NN_INTERNAL_H_
#define WEIR_OPS_NN_INTERNAL_H_

#include "weir/core/op.h"

// The parts that AddNnOps is made of.
namespace weir {

void AddConvOps(OpRegistry* ops);  // nn_conv.cc
void AddPoolOps(OpRegistry* ops);  // nn_pool.cc
void AddNormOps(OpRegistry* ops);  // nn_norm.cc

}  // namespace weir

#endif  // WEIR_OPS_NN_INTERNAL_H_
