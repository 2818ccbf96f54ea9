#ifndef WEIR_OPS_QUANTIZE_QUANTIZE_INTERNAL_H_
#define WEIR_OPS_QUANTIZE_QUANTIZE_INTERNAL_H_

#include "weir/core/graph/op.h"

// Declarations shared by the sources of the ops on quantized tensors.
namespace weir {

// The part of AddQuantizedOps in uniform.cc.
void AddUniformOps(OpRegistry* ops);

}  // namespace weir

#endif  // WEIR_OPS_QUANTIZE_QUANTIZE_INTERNAL_H_
