#ifndef WEIR_TESTS_GPU_TEST_GPU_H_
#define WEIR_TESTS_GPU_TEST_GPU_H_

#include <chrono>
#include <memory>
#include <string>

#include "weir/core/runtime/device.h"
#include "weir/core/runtime/kernel.h"
#include "weir/session/session.h"

namespace weir {

// The GPU for tests of GPU kernels: with --config=cuda the first one of the machine, else one
// simulated on the host (host_gpu.h).

// Returns the backends of which one is the GPU's. They exist as long as the process.
std::shared_ptr<const BackendRegistry> TestGpuBackends();
// GPU kernels, and the CPU's.
const KernelRegistry& TestGpuKernels();
// Returns null if there is none, with the reason in `*why`. A simulated GPU delays each piece of
// work by this time.
std::unique_ptr<Device> NewTestGpu(std::chrono::microseconds delay, std::string* why);

// Returns `options` with the GPU as "/gpu:0".
SessionOptions WithTestGpu(SessionOptions options = {});

}  // namespace weir

#endif  // WEIR_TESTS_GPU_TEST_GPU_H_
