#ifndef WEIR_KERNELS_CANCELLED_H_
#define WEIR_KERNELS_CANCELLED_H_

#include <chrono>

#include "weir/core/kernel.h"

namespace weir {

// For loops whose length the data decides: the executor looks between kernels alone. An error if
// the step is to end, because somebody has cancelled it or its time is up.
inline absl::Status CheckCancelled(const KernelContext& c) {
  if (c.cancellation() != nullptr && c.cancellation()->cancelled())
    return c.cancellation()->status();
  const auto& deadline = c.step().deadline;
  if (!deadline || std::chrono::steady_clock::now() < *deadline) return absl::OkStatus();
  return absl::DeadlineExceededError("The step took longer than its time limit");
}

}  // namespace weir

#endif  // WEIR_KERNELS_CANCELLED_H_
