#include "weir/tests/gpu/test_gpu.h"

namespace weir {

SessionOptions WithTestGpu(SessionOptions options) {
  options.kernels = &TestGpuKernels();
  options.make_devices = [] {
    std::string why;
    std::vector<std::unique_ptr<Device>> devices;
    if (auto gpu = NewTestGpu(std::chrono::microseconds(10), &why))
      devices.push_back(std::move(gpu));
    return devices;
  };
  return options;
}

}  // namespace weir
