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

// The kind of device for which a kernel is registered. A simulated accelerator (for tests) may run
// the CPU's kernels.
enum class Place : uint8_t { kCpu, kGpu };
inline constexpr Place kCpu = Place::kCpu;
inline constexpr Place kGpu = Place::kGpu;

class Kernel;
struct KernelInit;

// A device that runs kernels and holds tensors: a name, an allocator, and for an accelerator one
// stream.
//
// A device with a stream runs kernels asynchronously, in launch order: a kernel's `run` enqueues
// work and returns. Device memory is reused in stream order, so the host does not wait until a
// value is copied to it. The three copies below are enqueued in the same way. `done` is called, on
// any thread, when the copied bytes are available; the callee keeps the tensors alive until then.
// On the CPU everything is complete on return.
class Device {
 public:
  using Done = std::function<void(absl::Status)>;

  Device(DeviceName name, Place place)
      : name_(std::move(name)), text_(name_.ToString()), place_(place) {}
  virtual ~Device() = default;

  // The fully specified name: "/job:localhost/replica:0/task:0/device:CPU:0".
  const DeviceName& name() const { return name_; }
  const std::string& text() const { return text_; }
  Place place() const { return place_; }
  bool is_host() const { return place_ == kCpu && !has_stream(); }
  virtual bool has_stream() const { return false; }
  virtual Allocator& allocator() = 0;
  // A description for listings: "NVIDIA H100, 80 GB, compute capability 9.0".
  virtual std::string Description() const = 0;
  virtual int64_t memory_limit() const { return 0; }

  // Copies `from` to `to`, which is allocated and has the same dtype and size in bytes. Plain
  // dtypes only.
  virtual void CopyFromHost(const Tensor& from, const Tensor& to, Done done) = 0;
  virtual void CopyToHost(const Tensor& from, const Tensor& to, Done done) = 0;
  // Enqueues a copy in stream order, without a completion callback.
  virtual absl::Status CopyOnDevice(const Tensor& from, const Tensor& to) = 0;
  // Waits until all enqueued work has run. Returns the first error since the previous call.
  virtual absl::Status Synchronize() { return absl::OkStatus(); }

  // The native stream (cudaStream_t) on which kernels enqueue work; null on the CPU.
  virtual void* stream() { return nullptr; }
  // Wraps a kernel. Overridden by devices that run the kernels of another place in their own way
  // (the simulated accelerator).
  virtual Kernel Wrap(const KernelInit& init, Kernel kernel);

 private:
  const DeviceName name_;
  const std::string text_;
  const Place place_;
};

// Returns the name of a device of this process: "/job:localhost/replica:0/task:0/device:GPU:1". The
// job, replica and task of `task` override these defaults.
DeviceName LocalDeviceName(absl::string_view type, int id, const DeviceName& task = {});

// Creates the CPU device, "/device:CPU:0" of the task.
std::unique_ptr<Device> NewCpuDevice(const DeviceName& task = {});

}  // namespace weir

#endif  // WEIR_CORE_DEVICE_H_
