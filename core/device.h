#ifndef WEIR_CORE_DEVICE_H_
#define WEIR_CORE_DEVICE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weir/core/allocator.h"
#include "weir/core/scope.h"
#include "weir/core/tensor.h"

namespace weir {

// Which of an op's kernels a device runs. An accelerator made for tests may share the CPU's.
enum class Place : uint8_t { kCpu, kGpu };
inline constexpr Place kCpu = Place::kCpu;
inline constexpr Place kGpu = Place::kGpu;

class Kernel;
struct KernelInit;

// Where kernels run and tensors live: a name, an allocator, and for an accelerator one stream.
//
// A device with a stream runs kernels in the order they were started, later than the host goes on:
// a kernel's `run` enqueues and returns, and memory of the device is reused in stream order, so
// nothing waits until a value goes to the host. The three copies below are enqueued likewise;
// `done` is called (on any thread) when the copied bytes are there, and the tensors are kept alive
// until then by the callee. On the CPU everything has happened on return.
class Device {
 public:
  using Done = std::function<void(absl::Status)>;

  Device(DeviceName name, Place place)
      : name_(std::move(name)), text_(name_.ToString()), place_(place) {}
  virtual ~Device() = default;

  // Fully specified: "/job:localhost/replica:0/task:0/device:CPU:0".
  const DeviceName& name() const { return name_; }
  const std::string& text() const { return text_; }
  Place place() const { return place_; }
  bool is_host() const { return place_ == kCpu && !has_stream(); }
  virtual bool has_stream() const { return false; }
  virtual Allocator& allocator() = 0;
  // "NVIDIA H100, 80 GB, compute capability 9.0"; for listings.
  virtual std::string Description() const = 0;
  virtual int64_t memory_limit() const { return 0; }

  // `to` is allocated, of the same dtype and byte size. Plain dtypes only.
  virtual void CopyFromHost(const Tensor& from, const Tensor& to, Done done) = 0;
  virtual void CopyToHost(const Tensor& from, const Tensor& to, Done done) = 0;
  // In stream order; has no completion of its own.
  virtual absl::Status CopyOnDevice(const Tensor& from, const Tensor& to) = 0;
  // Waits until everything enqueued so far has run; returns the first error since the last call.
  virtual absl::Status Synchronize() { return absl::OkStatus(); }

  // The native stream (cudaStream_t) for kernels that enqueue on it; null on the CPU.
  virtual void* stream() { return nullptr; }
  // A device that runs another place's kernels in its own way (the simulated accelerator) wraps
  // them here.
  virtual Kernel Wrap(const KernelInit& init, Kernel kernel);

 private:
  const DeviceName name_;
  const std::string text_;
  const Place place_;
};

// The name of a device of this process: "/job:localhost/replica:0/task:0/device:GPU:1", or with the
// job, replica and task that `task` has.
DeviceName LocalDeviceName(absl::string_view type, int id, const DeviceName& task = {});

// The host's CPU, as "/device:CPU:0" of the task.
std::unique_ptr<Device> NewCpuDevice(const DeviceName& task = {});

}  // namespace weir

#endif  // WEIR_CORE_DEVICE_H_
