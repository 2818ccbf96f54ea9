#ifndef WEIR_OPS_LIB_OP_COSTS_H_
#define WEIR_OPS_LIB_OP_COSTS_H_

#include "weir/core/graph/op_traits.h"

// Cost functions for the records of ops (OpSpec::Flops, OpSpec::Bytes). Shapes that do not fit the
// op cost nothing.
namespace weir {

// [..., m, k] by [..., k, n], either of them transposed or not, and the epilogue of a fused op.
double MatMulFlops(const OpCall& call);
// Filters are [spatial..., channels in a group, channels out]; `call` is a convolution, or its
// gradient for the input or for the filter. The border of a padded image counts in full.
double ConvFlops(const OpCall& call);
double ConvBackpropInputFlops(const OpCall& call);
double ConvBackpropFilterFlops(const OpCall& call);
// Filters are [spatial..., channels, multiplier].
double DepthwiseConvFlops(const OpCall& call);
double DepthwiseConvBackpropInputFlops(const OpCall& call);
double DepthwiseConvBackpropFilterFlops(const OpCall& call);
// Two operations for each combination of values of the equation's labels; not known with "...".
double EinsumFlops(const OpCall& call);
// One operation for each element of each window.
double PoolFlops(const OpCall& call);
double ElementwiseFlops(const OpCall& call);  // One for each element of output 0.
double AddNFlops(const OpCall& call);
// Maximum, exponential, sum, and quotient or difference, for each element.
double SoftmaxFlops(const OpCall& call);

// Ops that the runtime makes by fusion.
double FusedElementwiseFlops(const OpCall& call);
double FusedUpdateFlops(const OpCall& call);
double FusedReductionFlops(const OpCall& call);
double FusedSeparableConvFlops(const OpCall& call);
double FusedAttentionFlops(const OpCall& call);
double FusedLayerNormFlops(const OpCall& call);
double DeferMatMulFlops(const OpCall& call);
double DeferMatMulBytes(const OpCall& call);

}  // namespace weir

#endif  // WEIR_OPS_LIB_OP_COSTS_H_
