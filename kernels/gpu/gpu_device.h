#ifndef WEIR_KERNELS_GPU_GPU_DEVICE_H_
#define WEIR_KERNELS_GPU_GPU_DEVICE_H_

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <memory>
#include <mutex>
#include <string>

#include "weir/core/runtime/device.h"
#include "weir/kernels/gpu/gpu_primitives.h"

namespace weir {

class GpuAllocator;
class StagingBuffers;
class CopyBackThread;

// An NVIDIA GPU with one stream, on which all kernels and copies are enqueued in order.
//
// Device memory is reused as soon as the host has freed it, because all work that still uses it
// precedes the reuse on the stream. Host memory is copied through the device's pinned buffers. So a
// copy to the device is complete for the caller as soon as it is enqueued, and a copy from the
// device is completed by a dedicated thread of the device.
//
// Errors that the GPU reports asynchronously are returned by the next Synchronize; the stream is
// unusable after them.
class CudaDevice : public Device {
 public:
  // Returns the driver's GPU with the number in `name`. Uses at most `memory_limit` bytes of its
  // memory; 0 means all. UNAVAILABLE, or UNIMPLEMENTED for a GPU that is too old.
  static absl::StatusOr<std::unique_ptr<Device>> Create(DeviceName name, int64_t memory_limit);
  ~CudaDevice() override;

  bool has_stream() const override { return true; }
  void* stream() override { return stream_; }
  const DevicePrimitives* primitives() const override { return primitives_.get(); }
  Allocator& allocator() override;
  std::string Description() const override { return description_; }
  int64_t memory_limit() const override { return memory_limit_; }
  void CopyFromHost(const Tensor& from, const Tensor& to, Done done) override;
  void CopyToHost(const Tensor& from, const Tensor& to, Done done) override;
  absl::Status CopyOnDevice(const Tensor& from, const Tensor& to) override;
  absl::Status Synchronize() override;
  // Makes the GPU current for the thread, and checks for launch errors afterward.
  Kernel Wrap(const KernelInit& init, Kernel kernel) override;

  // Returns OK, or the error prefixed with the function's and the device's name.
  absl::Status Check(cudaError_t error, absl::string_view function) const;
  absl::Status Check(cublasStatus_t status, absl::string_view function) const;
  absl::Status Check(cudnnStatus_t status, absl::string_view function) const;

  // NVIDIA's libraries, initialized on first use for this stream. Calls must be serialized.
  class Libraries {
   public:
    explicit Libraries(std::mutex& mutex) : lock_(mutex) {}
    cublasHandle_t blas = nullptr;
    cudnnHandle_t dnn = nullptr;

   private:
    std::unique_lock<std::mutex> lock_;
  };
  absl::StatusOr<Libraries> Blas();
  absl::StatusOr<Libraries> Dnn();

 private:
  CudaDevice(DeviceName name, int ordinal, std::string description, int64_t memory_limit);
  absl::Status Init();
  void MakeCurrent() const;

  const int ordinal_;
  const std::string description_;
  const int64_t memory_limit_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<GpuPrimitives> primitives_;
  std::unique_ptr<GpuAllocator> allocator_;
  std::unique_ptr<StagingBuffers> staging_;
  std::unique_ptr<CopyBackThread> copy_back_;
  std::mutex libraries_mutex_;
  cublasHandle_t blas_ = nullptr;
  cudnnHandle_t dnn_ = nullptr;
};

}  // namespace weir

#endif  // WEIR_KERNELS_GPU_GPU_DEVICE_H_
