#ifndef WEIR_KERNELS_GPU_DEVICE_H_
#define WEIR_KERNELS_GPU_DEVICE_H_

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <memory>
#include <mutex>
#include <string>

#include "weir/core/device.h"

namespace weir {

class GpuAllocator;
class StagingBuffers;
class CopyBackThread;

// An NVIDIA GPU: one stream on which everything is enqueued in order, kernels and copies alike.
//
// Memory of the device is reused as soon as the host has given it back, because whatever still uses
// it stands earlier on the stream. Host memory takes part in copies through pinned buffers of the
// device, so a copy to it is over for the caller as soon as it has been enqueued, and a copy from
// it is finished by a thread of the device, which no other waits for.
//
// Errors that the GPU reports after the fact come with the next Synchronize, as the stream is then
// beyond use.
class CudaDevice : public Device {
 public:
  // The GPU of the driver that has the number in `name`. At most `memory_limit` bytes
  // are taken from it; 0 for all that there is. UNAVAILABLE, or UNIMPLEMENTED for one that is too
  // old.
  static absl::StatusOr<std::unique_ptr<Device>> Create(DeviceName name, int64_t memory_limit);
  ~CudaDevice() override;

  bool has_stream() const override { return true; }
  void* stream() override { return stream_; }
  Allocator& allocator() override;
  std::string Description() const override { return description_; }
  int64_t memory_limit() const override { return memory_limit_; }
  void CopyFromHost(const Tensor& from, const Tensor& to, Done done) override;
  void CopyToHost(const Tensor& from, const Tensor& to, Done done) override;
  absl::Status CopyOnDevice(const Tensor& from, const Tensor& to) override;
  absl::Status Synchronize() override;
  // Makes the GPU the thread's current one, and looks for errors of launches afterward.
  Kernel Wrap(const KernelInit& init, Kernel kernel) override;

  // OK, or the error with the function's and the device's name in front.
  absl::Status Check(cudaError_t error, absl::string_view function) const;
  absl::Status Check(cublasStatus_t status, absl::string_view function) const;
  absl::Status Check(cudnnStatus_t status, absl::string_view function) const;

  // NVIDIA's libraries, set up on first use for this stream. One thread at a time may call them.
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
  std::unique_ptr<GpuAllocator> allocator_;
  std::unique_ptr<StagingBuffers> staging_;
  std::unique_ptr<CopyBackThread> copy_back_;
  std::mutex libraries_mutex_;
  cublasHandle_t blas_ = nullptr;
  cudnnHandle_t dnn_ = nullptr;
};

}  // namespace weir

#endif  // WEIR_KERNELS_GPU_DEVICE_H_
