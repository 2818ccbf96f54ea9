#ifndef WEIR_TOOLS_MACHINE_LIMITS_H_
#define WEIR_TOOLS_MACHINE_LIMITS_H_

#include "weir/core/status.h"
#include "weir/core/thread_pool.h"

namespace weir::tools {

// What this machine does at most with the threads of a pool.
struct MachineLimits {
  double bytes_per_second = 0;  // to and from memory
  double flops_per_second = 0;  // of float, multiplication and addition counting as two
  int num_threads = 0;
};

// Measures both on the pool's threads, which takes some 0.3 s: the best of several passes of
// a[i] = b[i] + s * c[i] over arrays of 96 to 384 MB together, if possible three times the size of
// the last cache (in a larger cache a part of the traffic is the cache's), and the best of several
// loops of fused multiply-adds in registers. Other work on the machine makes both smaller.
// RESOURCE_EXHAUSTED if there is no memory for the arrays.
absl::StatusOr<MachineLimits> MeasureMachineLimits(ThreadPool& pool);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_MACHINE_LIMITS_H_
