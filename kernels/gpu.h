#ifndef WEIR_KERNELS_GPU_H_
#define WEIR_KERNELS_GPU_H_

#include <memory>
#include <vector>

#include "weir/core/device.h"
#include "weir/core/kernel.h"

namespace weir {

// Returns the usable GPUs as "/device:GPU:0" of the task etc. None without a driver, or in a build
// without CUDA.
std::vector<std::unique_ptr<Device>> GpuDevices(const DeviceName& task = {});

// Registers the kernels of every GPU family. Does nothing in a build without CUDA.
void AddGpuKernels(KernelRegistry* kernels);

}  // namespace weir

#endif  // WEIR_KERNELS_GPU_H_
