#ifndef WEIR_KERNELS_GPU_LAUNCH_H_
#define WEIR_KERNELS_GPU_LAUNCH_H_

#include <cstdint>
#include <functional>
#include <type_traits>

#include "weir/core/tensor/numeric_types.h"

// Launches the kernels of the GPU sources (*_gpu.cu). All of them have the same form: a body, which
// is a struct of plain values and pointers, called once per index, in any order, with independent
// indices. Launches are enqueued on the device's stream (Device::stream) and run asynchronously;
// the device checks for launch errors after every kernel.
//
// Compiled by nvcc, the source runs on a GPU. Compiled as ordinary C++, the same source runs on a
// GPU emulated on the host; the emulator defines RunOnHostStream (tests/gpu/host_gpu.h).
namespace weir {

#ifndef __CUDACC__
// Enqueues `work` on the stream.
void RunOnHostStream(void* stream, std::function<void()> work);
#endif

namespace internal {

#ifdef __CUDACC__
inline constexpr int kThreadsPerBlock = 256;
// Enough to fill any current GPU; with more indices, each thread processes several.
inline constexpr int64_t kMaxBlocks = 4096;

template <class Body>
__global__ void __launch_bounds__(kThreadsPerBlock) ForEachKernel(int64_t n, Body body) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) body(i);
}
#endif

}  // namespace internal

// Enqueues body(i) for every i in [0, n).
template <class Body>
void ForEach(void* stream, int64_t n, const Body& body) {
  static_assert(std::is_trivially_copyable_v<Body>, "a body goes to the device as its bytes");
  static_assert(sizeof(Body) <= 4000, "the arguments of a kernel have 4 KiB");
  if (n <= 0) return;
#ifdef __CUDACC__
  const int64_t wanted = (n + internal::kThreadsPerBlock - 1) / internal::kThreadsPerBlock;
  const int64_t blocks = wanted < internal::kMaxBlocks ? wanted : internal::kMaxBlocks;
  internal::ForEachKernel<<<static_cast<unsigned>(blocks), internal::kThreadsPerBlock, 0,
                            static_cast<cudaStream_t>(stream)>>>(n, body);
#else
  // Backward: any order is valid.
  RunOnHostStream(stream, [n, body] {
    for (int64_t i = n; i-- > 0;) body(i);
  });
#endif
}

}  // namespace weir

#endif  // WEIR_KERNELS_GPU_LAUNCH_H_
