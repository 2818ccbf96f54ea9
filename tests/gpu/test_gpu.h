#ifndef WEIR_TESTS_GPU_TEST_GPU_H_
#define WEIR_TESTS_GPU_TEST_GPU_H_

#include <chrono>
#include <memory>
#include <string>

#include "weir/core/device.h"
#include "weir/core/kernel.h"
#include "weir/session/session.h"

namespace weir {

// The GPU that tests of GPU kernels run on: under --config=cuda the first one of the machine, else
// one that is acted out on the host (host_gpu.h).

// Kernels for it, and the CPU's.
const KernelRegistry& TestGpuKernels();
// Null where there is none, and then `*why` says so. A GPU on the host starts each piece of work
// this much late.
std::unique_ptr<Device> NewTestGpu(std::chrono::microseconds delay, std::string* why);

// `options` with the GPU as "/gpu:0", and its kernels.
SessionOptions WithTestGpu(SessionOptions options = {});

}  // namespace weir

#endif  // WEIR_TESTS_GPU_TEST_GPU_H_
