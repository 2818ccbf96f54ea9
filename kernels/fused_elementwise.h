#ifndef WEIR_KERNELS_FUSED_ELEMENTWISE_H_
#define WEIR_KERNELS_FUSED_ELEMENTWISE_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "weir/core/tensor.h"

namespace weir {

class KernelRegistry;

// What the ops _FusedElementwise and _FusedReduction can hold.
inline constexpr int kMostFusedOps = 64;
inline constexpr int kMostFusedArguments = 16;
inline constexpr int kMostFusedResults = 8;  // of a _FusedElementwise

// An op that may be a step of a fused op: its result has its arguments' type, and it refuses no
// values.
struct FusableOp {
  bool broadcasts = true;       // false: its arguments must have one shape
  const char* param = nullptr;  // the float attribute that it has, if any
  float cost = 0;               // nanoseconds an element
};
// Nothing for other ops.
std::optional<FusableOp> FindFusableOp(absl::string_view op, size_t num_arguments, DataType type);

// Whether a node should be the end of a _FusedReduction: it is a Sum, Mean or the like of `axes`
// over elements of the shape, which leaves few enough results for threads to share the work.
bool IsFusableReduction(absl::string_view op, DataType type, const Shape& shape,
                        const Tensor& axes);

void AddFusedElementwiseKernels(KernelRegistry* r);
void AddFusedLayerNormKernels(KernelRegistry* r);  // fused_layer_norm.cc
void AddFusedReductionKernels(KernelRegistry* r);  // fused_reduction.cc

}  // namespace weir

#endif  // WEIR_KERNELS_FUSED_ELEMENTWISE_H_
