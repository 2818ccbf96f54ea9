#ifndef WEIR_KERNELS_GPU_GPU_H_
#define WEIR_KERNELS_GPU_GPU_H_

#include <memory>

#include "weir/kernels/lib/backend.h"

namespace weir {

// Returns the backend of NVIDIA's GPUs, "/device:GPU:0" and so on: every usable one. It creates no
// device without a driver. Null in a build without CUDA.
std::unique_ptr<Backend> NewGpuBackend();

}  // namespace weir

#endif  // WEIR_KERNELS_GPU_GPU_H_
