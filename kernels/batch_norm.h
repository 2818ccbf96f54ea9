#ifndef WEIR_KERNELS_BATCH_NORM_H_
#define WEIR_KERNELS_BATCH_NORM_H_

#include "weir/core/kernel.h"
#include "weir/ops/window.h"

// What the kernels of FusedBatchNorm and its gradient read and check, on every device. Defined in
// batch_norm_cpu.cc.
namespace weir {

struct BatchNormAttributes {
  DataLayout layout;
  float epsilon = 0, factor = 1;  // factor: of the new values in the running mean and variance
  bool is_training = true;

  static absl::StatusOr<BatchNormAttributes> Read(const KernelInit& init);
};

// Images as a matrix with a row a pixel and a column a channel.
struct BatchNormMatrix {
  int64_t batch = 0, rows = 0, channels = 0;
};

// Of the forward op's inputs x, scale, offset, mean and variance. INVALID_ARGUMENT if they do not
// fit each other.
absl::StatusOr<BatchNormMatrix> ReadBatchNorm(const KernelContext& c, const BatchNormAttributes& a);
// Of the gradient's inputs dy, x, scale, and the saved mean and variance.
absl::StatusOr<BatchNormMatrix> ReadBatchNormGrad(const KernelContext& c,
                                                  const BatchNormAttributes& a);

}  // namespace weir

#endif  // WEIR_KERNELS_BATCH_NORM_H_
