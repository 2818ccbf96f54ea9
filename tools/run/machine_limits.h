#ifndef WEIR_TOOLS_RUN_MACHINE_LIMITS_H_
#define WEIR_TOOLS_RUN_MACHINE_LIMITS_H_

#include "weir/core/runtime/thread_pool.h"
#include "weir/core/tensor/status.h"

namespace weir::tools {

// The peak rates of this machine with the threads of a pool.
struct MachineLimits {
  double bytes_per_second = 0;  // memory bandwidth, reads and writes
  double flops_per_second = 0;  // float; a multiply-add counts as two
  int num_threads = 0;
};

// Measures both on the pool's threads, in about 0.3 s. The bandwidth is the best of several passes
// of a[i] = b[i] + s * c[i] over arrays of 96 to 384 MB in total, if possible three times the size
// of the last-level cache (with a larger cache, part of the traffic stays in the cache). The peak
// is the best of several loops of fused multiply-adds in registers. Other load on the machine
// reduces both. RESOURCE_EXHAUSTED if the arrays cannot be allocated.
absl::StatusOr<MachineLimits> MeasureMachineLimits(ThreadPool& pool);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_RUN_MACHINE_LIMITS_H_
