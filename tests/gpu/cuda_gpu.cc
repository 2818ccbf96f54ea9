#include "weir/kernels/gpu.h"
#include "weir/tests/gpu/test_gpu.h"

namespace weir {

const KernelRegistry& TestGpuKernels() { return BuiltinKernels(); }

std::unique_ptr<Device> NewTestGpu(std::chrono::microseconds, std::string* why) {
  std::vector<std::unique_ptr<Device>> gpus = GpuDevices();
  if (!gpus.empty()) return std::move(gpus.front());
  *why = "this machine has no GPU that CUDA can use";
  return nullptr;
}

}  // namespace weir
