#ifndef WEIR_KERNELS_CONTAINERS_BATCH_H_
#define WEIR_KERNELS_CONTAINERS_BATCH_H_

#include <chrono>
#include <thread>
#include <vector>

#include "weir/core/runtime/kernel.h"

// Helpers for kernels that concatenate the rows of several steps and distribute them again.
namespace weir {

// Concatenates tensors of at least one dimension along dimension 0. INVALID_ARGUMENT unless types
// and all other dimensions match.
absl::StatusOr<Tensor> ConcatRows(const std::vector<Tensor>& parts);

// Returns a duration attribute in microseconds, clamped to [least, one day].
std::chrono::microseconds Micros(int64_t value, int64_t least);

// Joins a thread of a resource. If called on that thread (a step that the thread just finished may
// hold the last reference to a session), detaches it instead.
void JoinOrDetach(std::thread& thread);

void AddUnbatchKernels(KernelRegistry* r);  // unbatch.cc

}  // namespace weir

#endif  // WEIR_KERNELS_CONTAINERS_BATCH_H_
