#ifndef WEIR_TESTS_GPU_HOST_GPU_H_
#define WEIR_TESTS_GPU_HOST_GPU_H_

#include <string>

#include "weir/tests/session/late_device.h"

namespace weir {

// A GPU that is acted out on the host: the GPU kernels' own sources, compiled as ordinary C++, on a
// stream that runs late and memory that nobody else may touch (tests/session/late_device.h). What
// it shows is that the kernels check, lay out, enqueue and compute what they should; what it cannot
// show is what nvcc and a GPU make of the same sources.
//
// Kernels that call NVIDIA's libraries (products of matrices, convolutions) are not among them: for
// these ops the CPU's kernels run on copies.
class HostGpu final : public LateDevice {
 public:
  explicit HostGpu(const LateDeviceOptions& options = {}) : LateDevice(OnGpu(options)) {}

  std::string Description() const override { return "GPU acted out on the host"; }
  void* stream() override { return this; }
  Kernel Wrap(const KernelInit& init, Kernel kernel) override;

 private:
  static LateDeviceOptions OnGpu(LateDeviceOptions options) {
    options.place = kGpu;
    return options;
  }
};

}  // namespace weir

#endif  // WEIR_TESTS_GPU_HOST_GPU_H_
