#include "weir/kernels/gpu/gpu_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "weir/core/tensor/tensor.h"

namespace weir {

absl::Status CudaStatus(cudaError_t error, absl::string_view function, absl::string_view device) {
  if (error == cudaSuccess) return absl::OkStatus();
  const std::string text = absl::StrCat(function, " failed on ", device, ": ",
                                        cudaGetErrorName(error), ": ", cudaGetErrorString(error));
  if (error == cudaErrorMemoryAllocation) return absl::ResourceExhaustedError(text);
  return absl::InternalError(text);
}

// ---- memory of the GPU

GpuAllocator::~GpuAllocator() {
  const std::lock_guard<std::mutex> lock(mutex_);
  FreeCached();
}

// Class 4k + j holds blocks of 256 * 2^k * (1 + j/4) bytes.
size_t GpuAllocator::ClassBytes(int c) {
  return ((size_t{4} + static_cast<size_t>(c % 4)) << (kSmallestLog - 2)) << (c / 4);
}

// The smallest class that holds `bytes`, which are at most 2^kLargestLog.
int GpuAllocator::SizeClass(size_t bytes) {
  if (bytes <= (size_t{1} << kSmallestLog)) return 0;
  const int log = std::bit_width(bytes) - 1;
  const size_t quarter = size_t{1} << (log - 2);
  const int j = static_cast<int>((bytes - (size_t{1} << log) + quarter - 1) / quarter);
  return (log - kSmallestLog) * 4 + j;
}

void* GpuAllocator::Allocate(size_t bytes) {
  if (bytes > (size_t{1} << kLargestLog)) return nullptr;
  const int size_class = SizeClass(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<void*>& cached = cached_[size_class];
  void* data = nullptr;
  if (!cached.empty()) {
    data = cached.back();
    cached.pop_back();
  } else {
    data = AllocateNew(ClassBytes(size_class));
    if (data == nullptr) {
      FreeCached();
      data = AllocateNew(ClassBytes(size_class));
    }
  }
  if (data != nullptr) in_use_ += static_cast<int64_t>(bytes);
  return data;
}

void GpuAllocator::Deallocate(void* data, size_t bytes) {
  if (data == nullptr) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  in_use_ -= static_cast<int64_t>(bytes);
  cached_[SizeClass(bytes)].push_back(data);
}

int64_t GpuAllocator::bytes_in_use() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return in_use_;
}

int64_t GpuAllocator::bytes_free() const {
  size_t left = 0, all = 0;
  cudaSetDevice(ordinal_);
  if (cudaMemGetInfo(&left, &all) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  // Cached blocks are available too.
  return std::min(static_cast<int64_t>(left), limit_ - reserved_) + reserved_ - in_use_;
}

void* GpuAllocator::AllocateNew(size_t bytes) {
  if (reserved_ + static_cast<int64_t>(bytes) > limit_) return nullptr;
  cudaSetDevice(ordinal_);
  void* data = nullptr;
  if (cudaMalloc(&data, bytes) != cudaSuccess) {
    cudaGetLastError();  // clear the error, which would be attributed to the next kernel
    return nullptr;
  }
  reserved_ += static_cast<int64_t>(bytes);
  return data;
}

void GpuAllocator::FreeCached() {
  cudaSetDevice(ordinal_);
  cudaStreamSynchronize(stream_);
  for (int c = 0; c < kClasses; ++c) {
    for (void* data : cached_[c]) cudaFree(data);
    reserved_ -= static_cast<int64_t>(cached_[c].size() * ClassBytes(c));
    cached_[c].clear();
  }
  cudaGetLastError();
}

// ---- pinned memory

StagingBuffers::~StagingBuffers() {
  for (const Buffer& buffer : free_) Free(buffer);
}

void StagingBuffers::Free(const Buffer& buffer) {
  cudaEventSynchronize(buffer.event);
  cudaEventDestroy(buffer.event);
  cudaFreeHost(buffer.data);
}

StagingBuffers::Buffer StagingBuffers::Acquire(size_t bytes) {
  const size_t wanted = std::bit_ceil(std::max<size_t>(bytes, 4096));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = 0; i < free_.size(); ++i) {
      if (free_[i].bytes != wanted || cudaEventQuery(free_[i].event) != cudaSuccess) continue;
      const Buffer found = free_[i];
      free_.erase(free_.begin() + static_cast<int64_t>(i));
      free_bytes_ -= found.bytes;
      cudaGetLastError();
      return found;
    }
    cudaGetLastError();  // clear the error: "not ready" is none
  }
  Buffer buffer{.bytes = wanted};
  if (cudaHostAlloc(&buffer.data, wanted, cudaHostAllocDefault) != cudaSuccess) {
    cudaGetLastError();
    return {};
  }
  // Threads that wait for it sleep. An event that was never recorded counts as complete.
  constexpr unsigned kFlags = cudaEventDisableTiming | cudaEventBlockingSync;
  if (cudaEventCreateWithFlags(&buffer.event, kFlags) != cudaSuccess) {
    cudaGetLastError();
    cudaFreeHost(buffer.data);
    return {};
  }
  return buffer;
}

void StagingBuffers::Release(Buffer buffer) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_bytes_ + buffer.bytes <= kMaxCachedBytes) {
      free_bytes_ += buffer.bytes;
      free_.push_back(buffer);
      return;
    }
  }
  Free(buffer);
}

// ---- copies to the host

CopyBackThread::CopyBackThread(const Device& device, int ordinal, StagingBuffers& staging)
    : device_(device), ordinal_(ordinal), staging_(staging), thread_([this] { Run(); }) {}

CopyBackThread::~CopyBackThread() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void CopyBackThread::Add(Copy copy) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    copies_.push_back(std::move(copy));
  }
  wake_.notify_one();
}

void CopyBackThread::Run() {
  cudaSetDevice(ordinal_);
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || !copies_.empty(); });
    if (copies_.empty()) return;
    Copy copy = std::move(copies_.front());
    copies_.pop_front();
    lock.unlock();
    Finish(std::move(copy));
    lock.lock();
  }
}

void CopyBackThread::Finish(Copy copy) {
  const absl::Status status =
      CudaStatus(cudaEventSynchronize(copy.buffer.event), "cudaEventSynchronize", device_.text());
  if (status.ok()) std::memcpy(copy.to.raw(), copy.buffer.data, copy.to.num_bytes());
  staging_.Release(copy.buffer);
  copy.to = Tensor();
  copy.done(status);
}

}  // namespace weir
