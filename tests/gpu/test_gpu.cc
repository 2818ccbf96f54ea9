#include "weir/tests/gpu/test_gpu.h"

#include "weir/kernels/lib/backend.h"

namespace weir {

const KernelRegistry& TestGpuKernels() { return TestGpuBackends()->kernels(); }

SessionOptions WithTestGpu(SessionOptions options) {
  options.backends = TestGpuBackends();
  return options;
}

}  // namespace weir
