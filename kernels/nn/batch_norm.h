#ifndef WEIR_KERNELS_NN_BATCH_NORM_H_
#define WEIR_KERNELS_NN_BATCH_NORM_H_

#include "weir/core/runtime/kernel.h"
#include "weir/ops/lib/window.h"

// Attributes and input validation of FusedBatchNorm and its gradient, for every device. Defined in
// batch_norm_cpu.cc.
namespace weir {

struct BatchNormAttributes {
  DataLayout layout;
  float epsilon = 0,
        factor = 1;  // factor: weight of the new values in the running mean and variance
  bool is_training = true;

  static absl::StatusOr<BatchNormAttributes> Read(const KernelInit& init);
};

// Images as a matrix with one row per pixel and one column per channel.
struct BatchNormMatrix {
  int64_t batch = 0, rows = 0, channels = 0;
};

// Returns the matrix for the forward op's inputs x, scale, offset, mean and variance.
// INVALID_ARGUMENT if their shapes do not match.
absl::StatusOr<BatchNormMatrix> ReadBatchNorm(const KernelContext& c, const BatchNormAttributes& a);
// Returns the matrix for the gradient's inputs dy, x, scale, and the saved mean and variance.
absl::StatusOr<BatchNormMatrix> ReadBatchNormGrad(const KernelContext& c,
                                                  const BatchNormAttributes& a);

}  // namespace weir

#endif  // WEIR_KERNELS_NN_BATCH_NORM_H_
