#ifndef WEIR_KERNELS_BATCH_H_
#define WEIR_KERNELS_BATCH_H_

#include <chrono>
#include <thread>
#include <vector>

#include "weir/core/kernel.h"

// What the kernels share that join rows of several steps and deal them out again.
namespace weir {

// Tensors of at least one dimension, one after the other along dimension 0. INVALID_ARGUMENT
// unless they agree in type and in all other dimensions.
absl::StatusOr<Tensor> JoinRows(const std::vector<Tensor>& parts);

// A time in microseconds that an attribute gives: `least` to a day.
std::chrono::microseconds Micros(int64_t value, int64_t least);

// Waits for a thread of a resource to end. The last to let go of a session may be a step that the
// thread has finished: then it is let go itself.
void JoinOrDetach(std::thread& thread);

void AddUnbatchKernels(KernelRegistry* r);  // unbatch.cc

}  // namespace weir

#endif  // WEIR_KERNELS_BATCH_H_
