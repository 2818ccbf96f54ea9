#ifndef WEIR_KERNELS_MATH_FUSED_ELEMENTWISE_H_
#define WEIR_KERNELS_MATH_FUSED_ELEMENTWISE_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weir/core/tensor/tensor.h"

namespace weir {

class KernelRegistry;

// Limits of the ops _FusedElementwise and _FusedReduction.
inline constexpr int kMaxFusedOps = 64;
inline constexpr int kMaxFusedArguments = 16;
inline constexpr int kMaxFusedResults = 8;  // of a _FusedElementwise

// An op that may be a stage of a fused op: its result type is its argument type, and it accepts all
// values.
struct FusableOp {
  bool broadcasts = true;       // false: its arguments must have equal shapes
  const char* param = nullptr;  // its float attribute, if any
  float cost = 0;               // nanoseconds per element
};
// Returns nullopt for other ops.
std::optional<FusableOp> FindFusableOp(absl::string_view op, size_t num_arguments, DataType type);

// Returns whether a program of fusable ops is within the limits of _FusedElementwise and
// _FusedReduction: those above, and that of the buffers for the values that are live at a time. The
// arguments are the attributes of such a node.
bool AreWithinFusedLimits(size_t num_arguments, absl::Span<const int64_t> operands,
                          absl::Span<const int64_t> others_of);

// Returns whether a node may be the reduction of a _FusedReduction: a Sum, Mean or similar op over
// `axes` of elements of this shape, with few enough results for threads to share the work.
bool IsFusableReduction(absl::string_view op, DataType type, const Shape& shape,
                        const Tensor& axes);

void AddFusedAttentionKernels(KernelRegistry* r);  // fused_attention.cc
void AddFusedElementwiseKernels(KernelRegistry* r);
void AddFusedLayerNormKernels(KernelRegistry* r);  // fused_layer_norm.cc
void AddFusedReductionKernels(KernelRegistry* r);  // fused_reduction.cc

}  // namespace weir

#endif  // WEIR_KERNELS_MATH_FUSED_ELEMENTWISE_H_
