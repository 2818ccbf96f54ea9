#ifndef WEIR_KERNELS_GPU_GPU_MEMORY_H_
#define WEIR_KERNELS_GPU_GPU_MEMORY_H_

#include <cuda_runtime_api.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "weir/core/runtime/device.h"
#include "weir/core/tensor/buffer.h"

// The memory of a CUDA device, and host memory that the device can access. One object per stream.
namespace weir {

// A caching allocator of GPU memory. Freed blocks are cached in lists by size class, four classes
// per power of two, and reused at once: all work that still accesses them precedes the next owner's
// work on the stream. Only if the GPU is out of memory, or the limit is reached, the allocator
// synchronizes the stream and frees all cached blocks.
class GpuAllocator final : public Allocator {
 public:
  GpuAllocator(int ordinal, cudaStream_t stream, int64_t limit)
      : ordinal_(ordinal), stream_(stream), limit_(limit) {}
  // No block may be in use.
  ~GpuAllocator() override;

  absl::string_view name() const override { return "gpu"; }
  void* Allocate(size_t bytes) override;
  void Deallocate(void* data, size_t bytes) override;
  bool host_accessible() const override { return false; }
  int64_t bytes_in_use() const override;
  int64_t bytes_free() const override;

 private:
  // 256 bytes to 2^47, with three sizes between two powers of two.
  static constexpr int kSmallestLog = 8, kLargestLog = 47;
  static constexpr int kClasses = (kLargestLog - kSmallestLog) * 4 + 1;
  static int SizeClass(size_t bytes);
  static size_t ClassBytes(int size_class);
  void* AllocateNew(size_t bytes);
  void FreeCached();

  const int ordinal_;
  const cudaStream_t stream_;
  const int64_t limit_;
  mutable std::mutex mutex_;
  std::array<std::vector<void*>, kClasses> cached_;
  int64_t reserved_ = 0;  // allocated from the GPU
  int64_t in_use_ = 0;
};

// Pinned host buffers for copies. A buffer is used by one copy at a time; its event signals when
// the GPU is done with it.
class StagingBuffers {
 public:
  struct Buffer {
    void* data = nullptr;
    size_t bytes = 0;
    cudaEvent_t event = nullptr;
  };

  StagingBuffers() = default;
  // No copy may be in flight.
  ~StagingBuffers();

  // Returns an unused buffer of at least `bytes` bytes; its `data` is null if out of memory.
  Buffer Acquire(size_t bytes);
  // Returns the buffer to the pool. The GPU may use it until its event.
  void Release(Buffer buffer);

 private:
  static constexpr size_t kMaxCachedBytes = size_t{256}
                                            << 20;  // in bytes; buffers beyond it are freed

  static void Free(const Buffer& buffer);

  std::mutex mutex_;
  std::vector<Buffer> free_;
  size_t free_bytes_ = 0;
};

// Completes copies from the GPU, in the order they were enqueued: waits for the event of each,
// copies the bytes from the pinned buffer to their destination, and calls its callback.
class CopyBackThread {
 public:
  struct Copy {
    StagingBuffers::Buffer buffer;
    Tensor to;
    Device::Done done;
  };

  CopyBackThread(const Device& device, int ordinal, StagingBuffers& staging);
  // Completes all added copies.
  ~CopyBackThread();

  void Add(Copy copy);

 private:
  void Run();
  void Finish(Copy copy);

  const Device& device_;
  const int ordinal_;
  StagingBuffers& staging_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Copy> copies_;
  bool stop_ = false;
  std::thread thread_;  // last member: starts when all others are initialized
};

// Converts the error of a CUDA call on a device; OK for cudaSuccess.
absl::Status CudaStatus(cudaError_t error, absl::string_view function, absl::string_view device);

}  // namespace weir

#endif  // WEIR_KERNELS_GPU_GPU_MEMORY_H_
