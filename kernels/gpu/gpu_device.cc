#include "weir/kernels/gpu/gpu_device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "weir/core/runtime/kernel.h"
#include "weir/core/tensor/tensor.h"
#include "weir/kernels/gpu/gpu.h"
#include "weir/kernels/gpu/gpu_kernels.h"
#include "weir/kernels/gpu/gpu_memory.h"

namespace weir {

namespace {

constexpr int kOldestMajor = 7, kOldestMinor = 5;  // minimum that the kernels are compiled for

absl::Status CheckSizes(const Tensor& from, const Tensor& to) {
  if (from.num_bytes() == to.num_bytes()) return absl::OkStatus();
  return Internal("copy between ", from.Description(), " and ", to.Description());
}

absl::Status NoStaging(const Tensor& t) {
  return absl::ResourceExhaustedError(
      absl::StrCat("out of pinned host memory for a copy of ", t.Description()));
}

}  // namespace

CudaDevice::CudaDevice(DeviceName name, int ordinal, std::string description, int64_t memory_limit)
    : Device(std::move(name), kGpu),
      ordinal_(ordinal),
      description_(std::move(description)),
      memory_limit_(memory_limit) {}

absl::StatusOr<std::unique_ptr<Device>> CudaDevice::Create(DeviceName name, int64_t memory_limit) {
  const int ordinal = *name.id;
  const std::string text = name.ToString();
  cudaDeviceProp properties;
  WEIR_RETURN_IF_ERROR(
      CudaStatus(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties", text));
  if (properties.major < kOldestMajor ||
      (properties.major == kOldestMajor && properties.minor < kOldestMinor)) {
    return Unimplemented(text, " (", properties.name, ") has compute capability ", properties.major,
                         ".", properties.minor, ", kernels need ", kOldestMajor, ".", kOldestMinor);
  }
  const int64_t total = static_cast<int64_t>(properties.totalGlobalMem);
  if (memory_limit <= 0 || memory_limit > total) memory_limit = total;
  std::string description = absl::StrFormat(
      "%s, %.0f GiB, compute capability %d.%d", properties.name,
      static_cast<double>(total) / (int64_t{1} << 30), properties.major, properties.minor);
  std::unique_ptr<CudaDevice> device(
      new CudaDevice(std::move(name), ordinal, std::move(description), memory_limit));
  WEIR_RETURN_IF_ERROR(device->Init());
  return device;
}

absl::Status CudaDevice::Init() {
  MakeCurrent();
  // Not synchronized with the process's default stream.
  WEIR_RETURN_IF_ERROR(Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                             "cudaStreamCreateWithFlags"));
  primitives_ = std::make_unique<GpuPrimitives>(stream_);
  allocator_ = std::make_unique<GpuAllocator>(ordinal_, stream_, memory_limit_);
  staging_ = std::make_unique<StagingBuffers>();
  copy_back_ = std::make_unique<CopyBackThread>(*this, ordinal_, *staging_);
  return absl::OkStatus();
}

CudaDevice::~CudaDevice() {
  MakeCurrent();
  copy_back_.reset();
  if (stream_ != nullptr) cudaStreamSynchronize(stream_);
  if (dnn_ != nullptr) cudnnDestroy(dnn_);
  if (blas_ != nullptr) cublasDestroy(blas_);
  staging_.reset();
  allocator_.reset();
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
  cudaGetLastError();
}

void CudaDevice::MakeCurrent() const { cudaSetDevice(ordinal_); }

Allocator& CudaDevice::allocator() { return *allocator_; }

void CudaDevice::CopyFromHost(const Tensor& from, const Tensor& to, Done done) {
  absl::Status status = CheckSizes(from, to);
  const size_t bytes = from.num_bytes();
  if (!status.ok() || bytes == 0) return done(status);
  MakeCurrent();
  const StagingBuffers::Buffer buffer = staging_->Acquire(bytes);
  if (buffer.data == nullptr) return done(NoStaging(from));
  std::memcpy(buffer.data, from.raw(), bytes);
  status = Check(cudaMemcpyAsync(const_cast<void*>(to.raw()), buffer.data, bytes,
                                 cudaMemcpyHostToDevice, stream_),
                 "cudaMemcpyAsync");
  if (status.ok()) status = Check(cudaEventRecord(buffer.event, stream_), "cudaEventRecord");
  staging_->Release(buffer);
  done(status);
}

void CudaDevice::CopyToHost(const Tensor& from, const Tensor& to, Done done) {
  absl::Status status = CheckSizes(from, to);
  const size_t bytes = from.num_bytes();
  if (!status.ok() || bytes == 0) return done(status);
  MakeCurrent();
  const StagingBuffers::Buffer buffer = staging_->Acquire(bytes);
  if (buffer.data == nullptr) return done(NoStaging(from));
  status = Check(cudaMemcpyAsync(buffer.data, from.raw(), bytes, cudaMemcpyDeviceToHost, stream_),
                 "cudaMemcpyAsync");
  if (status.ok()) status = Check(cudaEventRecord(buffer.event, stream_), "cudaEventRecord");
  if (status.ok()) return copy_back_->Add({buffer, to, std::move(done)});
  staging_->Release(buffer);
  done(status);
}

absl::Status CudaDevice::CopyOnDevice(const Tensor& from, const Tensor& to) {
  WEIR_RETURN_IF_ERROR(CheckSizes(from, to));
  if (from.num_bytes() == 0 || from.raw() == to.raw()) return absl::OkStatus();
  MakeCurrent();
  return Check(cudaMemcpyAsync(const_cast<void*>(to.raw()), from.raw(), from.num_bytes(),
                               cudaMemcpyDeviceToDevice, stream_),
               "cudaMemcpyAsync");
}

absl::Status CudaDevice::Synchronize() {
  MakeCurrent();
  return Check(cudaStreamSynchronize(stream_), "a kernel or copy");
}

Kernel CudaDevice::Wrap(const KernelInit&, Kernel kernel) {
  if (kernel.is_constant() || kernel.is_async()) return kernel;
  return Kernel([this, run = kernel.run()](KernelContext& c) -> absl::Status {
    MakeCurrent();
    const absl::Status status = run(c);
    const cudaError_t error = cudaGetLastError();
    return status.ok() ? Check(error, "starting the kernel") : status;
  });
}

absl::Status CudaDevice::Check(cudaError_t error, absl::string_view function) const {
  return error == cudaSuccess ? absl::OkStatus() : CudaStatus(error, function, text());
}

absl::Status CudaDevice::Check(cublasStatus_t status, absl::string_view function) const {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string message =
      absl::StrCat(function, " failed on ", text(), ": ", cublasGetStatusName(status), ": ",
                   cublasGetStatusString(status));
  if (status == CUBLAS_STATUS_ALLOC_FAILED) return absl::ResourceExhaustedError(message);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return absl::UnimplementedError(message);
  return absl::InternalError(message);
}

absl::Status CudaDevice::Check(cudnnStatus_t status, absl::string_view function) const {
  if (status == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  const std::string message =
      absl::StrCat(function, " failed on ", text(), ": ", cudnnGetErrorString(status));
  if (status == CUDNN_STATUS_ALLOC_FAILED) return absl::ResourceExhaustedError(message);
  if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED)
    return absl::UnimplementedError(message);
  return absl::InternalError(message);
}

absl::StatusOr<CudaDevice::Libraries> CudaDevice::Blas() {
  Libraries libraries(libraries_mutex_);
  if (blas_ == nullptr) WEIR_RETURN_IF_ERROR(Check(cublasCreate(&blas_), "cublasCreate"));
  WEIR_RETURN_IF_ERROR(Check(cublasSetStream(blas_, stream_), "cublasSetStream"));
  libraries.blas = blas_;
  return libraries;
}

absl::StatusOr<CudaDevice::Libraries> CudaDevice::Dnn() {
  Libraries libraries(libraries_mutex_);
  if (dnn_ == nullptr) WEIR_RETURN_IF_ERROR(Check(cudnnCreate(&dnn_), "cudnnCreate"));
  WEIR_RETURN_IF_ERROR(Check(cudnnSetStream(dnn_, stream_), "cudnnSetStream"));
  libraries.dnn = dnn_;
  return libraries;
}

// ---- the backend

namespace {

// Returns the limit that the user sets for each GPU, in bytes; 0 for none.
int64_t MemoryLimit() {
  int64_t megabytes = 0;
  const char* const limit = std::getenv("WEIR_GPU_MEMORY_MB");
  if (limit != nullptr && (!absl::SimpleAtoi(limit, &megabytes) || megabytes < 0)) {
    std::fprintf(stderr, "weir: WEIR_GPU_MEMORY_MB is '%s', not a number of megabytes\n", limit);
    megabytes = 0;
  }
  return std::min(megabytes, int64_t{1} << 40) << 20;
}

class CudaBackend final : public Backend {
 public:
  CudaBackend() : Backend("GPU") {}

  void AddKernels(KernelRegistry* kernels) const override {
    AddLoopKernels(kernels);
    AddMatMulGpu(kernels);
    AddConvGpu(kernels);
  }

  // A GPU that cannot be used is left out, with a line in the log.
  absl::StatusOr<std::vector<std::unique_ptr<Device>>> CreateDevices(
      const DeviceName& task) const override {
    std::vector<std::unique_ptr<Device>> devices;
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) {
      cudaGetLastError();  // no driver, or no GPU
      return devices;
    }
    const int64_t limit = MemoryLimit();
    for (int i = 0; i < count; ++i) {
      auto device = CudaDevice::Create(LocalDeviceName("GPU", i, task), limit);
      if (device.ok()) {
        devices.push_back(*std::move(device));
      } else {
        std::fprintf(stderr, "weir: a GPU is left out: %s\n", device.status().ToString().c_str());
      }
    }
    return devices;
  }
};

}  // namespace

std::unique_ptr<Backend> NewGpuBackend() { return std::make_unique<CudaBackend>(); }

}  // namespace weir
