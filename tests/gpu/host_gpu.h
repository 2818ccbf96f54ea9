#ifndef WEIR_TESTS_GPU_HOST_GPU_H_
#define WEIR_TESTS_GPU_HOST_GPU_H_

#include <string>

#include "weir/kernels/gpu/gpu_primitives.h"
#include "weir/tests/session/lib/late_device.h"

namespace weir {

// A GPU simulated on the host: the GPU kernels' own sources, compiled as ordinary C++, on a stream
// that runs late and with memory that other code must not access (tests/session/lib/late_device.h).
// It verifies that the kernels check, lay out, enqueue and compute correctly. It cannot verify what
// nvcc and a GPU do with the same sources.
//
// Kernels that call NVIDIA's libraries (matrix products, convolutions) are excluded: for these ops
// the CPU's kernels run on copies.
class HostGpu final : public LateDevice {
 public:
  explicit HostGpu(const LateDeviceOptions& options = {}, const DeviceName& task = {})
      : LateDevice(OnGpu(options), task) {}

  std::string Description() const override { return "GPU acted out on the host"; }
  void* stream() override { return this; }
  const DevicePrimitives* primitives() const override { return &primitives_; }
  Kernel Wrap(const KernelInit& init, Kernel kernel) override;

 private:
  static LateDeviceOptions OnGpu(LateDeviceOptions options) {
    options.place = kGpu;
    return options;
  }

  const GpuPrimitives primitives_{this};
};

}  // namespace weir

#endif  // WEIR_TESTS_GPU_HOST_GPU_H_
