// A host simulation of the part of CUDA's runtime that kernels/*/gpu_*.cc call: one GPU, whose
// memory only its stream may access, and whose stream runs late. The next file does the same for
// cuBLAS and cuDNN. With both, all host code that --config=cuda adds to a program runs without a
// GPU; they are linked before the toolkit's libraries and replace them.

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "weir/kernels/gpu/launch.h"
#include "weir/tests/session/lib/late_device.h"

namespace weir {
namespace {

// One stream and one memory: a second session of the program shares the stream.
struct Gpu {
  LateStream stream{std::chrono::microseconds(0)};
  LateMemory memory{size_t{256} << 20, stream};
  std::mutex mutex;
  std::map<void*, size_t> blocks;
};
Gpu& TheGpu() {
  static Gpu* const gpu = new Gpu;
  return *gpu;
}

// Runs on the GPU, after everything enqueued on its stream.
void Enqueue(std::function<void()> work) {
  TheGpu().stream.Enqueue([work = std::move(work)] {
    TheGpu().memory.Open();
    work();
    TheGpu().memory.Close();
  });
}

}  // namespace

void RunOnHostStream(void*, std::function<void()> work) { Enqueue(std::move(work)); }

}  // namespace weir

struct CUevent_st {
  std::atomic<int64_t> recorded{0}, reached{0};
};

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int) {
  *prop = {};
  std::strcpy(prop->name, "GPU that is acted out");
  prop->totalGlobalMem = size_t{256} << 20;
  prop->major = 9;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorName(cudaError_t) { return "cudaError"; }
const char* cudaGetErrorString(cudaError_t) { return "an error"; }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = reinterpret_cast<cudaStream_t>(&weir::TheGpu());
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  weir::TheGpu().stream.Wait();
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }

cudaError_t cudaMalloc(void** data, size_t bytes) {
  weir::Gpu& gpu = weir::TheGpu();
  const std::lock_guard<std::mutex> lock(gpu.mutex);
  *data = gpu.memory.Allocate(bytes);
  if (*data == nullptr) return cudaErrorMemoryAllocation;
  gpu.blocks[*data] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* data) {
  weir::Gpu& gpu = weir::TheGpu();
  const std::lock_guard<std::mutex> lock(gpu.mutex);
  const auto block = gpu.blocks.find(data);
  if (block == gpu.blocks.end()) return cudaErrorInvalidValue;
  gpu.memory.Deallocate(data, block->second);
  gpu.blocks.erase(block);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = static_cast<size_t>(weir::TheGpu().memory.bytes_free());
  *total = size_t{256} << 20;
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned) {
  *data = std::malloc(bytes);
  return *data == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFreeHost(void* data) {
  std::free(data);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t) {
  const bool to_gpu = weir::TheGpu().memory.Contains(to);
  const bool from_gpu = weir::TheGpu().memory.Contains(from);
  if (to_gpu != (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) ||
      from_gpu != (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice)) {
    return cudaErrorInvalidMemcpyDirection;
  }
  weir::Enqueue([=] { std::memmove(to, from, bytes); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  const int64_t ticket = ++event->recorded;
  weir::Enqueue([=] { event->reached = ticket; });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return event->reached == event->recorded ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (cudaEventQuery(event) != cudaSuccess) weir::TheGpu().stream.Wait();
  return cudaEventQuery(event);
}

}  // extern "C"
