#include <utility>
#include <vector>

#include "weir/kernels/lib/backend.h"
#include "weir/tests/gpu/test_gpu.h"

namespace weir {

std::shared_ptr<const BackendRegistry> TestGpuBackends() {
  return {std::shared_ptr<void>(), &BuiltinBackends()};
}

std::unique_ptr<Device> NewTestGpu(std::chrono::microseconds, std::string* why) {
  absl::StatusOr<std::vector<std::unique_ptr<Device>>> gpus =
      BuiltinBackends().Find("GPU")->CreateDevices({});
  if (gpus.ok() && !gpus->empty()) return std::move(gpus->front());
  *why = "this machine has no GPU that CUDA can use";
  return nullptr;
}

}  // namespace weir
