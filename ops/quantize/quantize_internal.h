#ifndef WEIR_OPS_QUANTIZE_QUANTIZE_INTERNAL_H_
#define WEIR_OPS_QUANTIZE_QUANTIZE_INTERNAL_H_

#include "weir/core/graph/op.h"

// Declarations shared by the sources of the ops on quantized tensors.
namespace weir {

// The parts of AddQuantizedOps, one source file each.
void AddQuantizedFusedOps(OpRegistry* ops);  // quantized_fused.cc
void AddUniformOps(OpRegistry* ops);         // uniform.cc

}  // namespace weir

#endif  // WEIR_OPS_QUANTIZE_QUANTIZE_INTERNAL_H_
