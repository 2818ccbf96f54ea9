#ifndef WEIR_KERNELS_BATCH_H_
#define WEIR_KERNELS_BATCH_H_

#include <vector>

#include "weir/core/kernel.h"

// What the kernels share that join rows of several steps and deal them out again.
namespace weir {

// Tensors of at least one dimension, one after the other along dimension 0. INVALID_ARGUMENT
// unless they agree in type and in all other dimensions.
absl::StatusOr<Tensor> JoinRows(const std::vector<Tensor>& parts);

void AddUnbatchKernels(KernelRegistry* r);  // unbatch.cc

}  // namespace weir

#endif  // WEIR_KERNELS_BATCH_H_
