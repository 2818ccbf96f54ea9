#ifndef WEIR_CORE_RUNTIME_DEVICE_H_
#define WEIR_CORE_RUNTIME_DEVICE_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/graph/scope.h"
#include "weir/core/tensor/allocator.h"
#include "weir/core/tensor/api.h"
#include "weir/core/tensor/tensor.h"

// Devices: where kernels run and tensors live. Backends create them (kernels/lib/backend.h), and
// sessions own them.
namespace WEIR_API weir {

// The kind of device for which a kernel is registered: a name of up to 15 characters, usually the
// type in the names of the devices. Any backend (kernels/lib/backend.h) may define one. Places of
// equal names are equal; a comparison compares two words.
//
//   inline constexpr Place kNpu("NPU");
class Place {
 public:
  // A place with this name, a string literal.
  template <size_t kSize>
  requires(kSize <= 16) explicit constexpr Place(const char (&name)[kSize]) {
    std::copy_n(name, kSize, name_.begin());
  }
  // The name, for as long as the place lives.
  absl::string_view name() const { return name_.data(); }
  friend constexpr bool operator==(const Place& a, const Place& b) {
    return a.words() == b.words();
  }
  // By name.
  friend bool operator<(const Place& a, const Place& b) { return a.name() < b.name(); }
  template <class H>
  friend H AbslHashValue(H h, const Place& place) {
    return H::combine(std::move(h), place.words());
  }

  // Deprecated: use weir::kCpu and weir::kGpu.
  static const Place kCpu, kGpu;

 private:
  constexpr std::array<uint64_t, 2> words() const {
    return std::bit_cast<std::array<uint64_t, 2>>(name_);
  }

  std::array<char, 16> name_ = {};
};
// The places of the CPU's kernels, and of those for NVIDIA GPUs.
inline constexpr Place kCpu("CPU");
inline constexpr Place kGpu("GPU");
inline constexpr Place Place::kCpu("CPU");
inline constexpr Place Place::kGpu("GPU");

class DevicePrimitives;
class Kernel;
struct KernelInit;

// A device that runs kernels and holds tensors: a name, an allocator, copies, and for an
// accelerator perhaps one stream. A backend creates it (kernels/lib/backend.h).
//
// A device with a stream runs kernels asynchronously, in launch order: a kernel's `run` enqueues
// work and returns. Device memory is reused in stream order, so the host does not wait until a
// value is copied to it. The three copies below are enqueued in the same way. `done` is called, on
// any thread, when the copied bytes are available; the callee keeps the tensors alive until then.
// On the CPU everything is complete on return.
class Device {
 public:
  // Called with the result of a copy.
  using Done = std::function<void(absl::Status)>;

  // Creates a device for kernels registered for `place`. Kinds of devices derive from this class.
  Device(DeviceName name, Place place)
      : name_(std::move(name)), text_(name_.ToString()), place_(place) {}
  virtual ~Device() = default;

  // The full name, parsed and as text: "/job:localhost/replica:0/task:0/device:CPU:0".
  const DeviceName& name() const { return name_; }
  const std::string& text() const { return text_; }
  // The place whose kernels it runs.
  const Place& place() const { return place_; }
  // True for the CPU: kernels of the CPU run on its memory, when they are called.
  bool is_host() const { return place_ == kCpu && !has_stream(); }
  // Whether kernels and copies are asynchronous; otherwise they are complete on return.
  virtual bool has_stream() const { return false; }
  // The memory of its tensors. Owned by the device, which outlives the tensors.
  virtual Allocator& allocator() = 0;
  // A description for listings: "NVIDIA H100, 80 GB, compute capability 9.0".
  virtual std::string Description() const = 0;
  // The memory in bytes that kernels may use; 0 if it is not known.
  virtual int64_t memory_limit() const { return 0; }

  // Copies `from` to `to`, which is allocated and has the same dtype and size in bytes. Plain
  // dtypes only.
  virtual void CopyFromHost(const Tensor& from, const Tensor& to, Done done) = 0;
  virtual void CopyToHost(const Tensor& from, const Tensor& to, Done done) = 0;
  // Enqueues a copy in stream order, without a completion callback.
  virtual absl::Status CopyOnDevice(const Tensor& from, const Tensor& to) = 0;
  // Waits until all enqueued work has run. Returns the first error since the previous call.
  virtual absl::Status Synchronize() { return absl::OkStatus(); }

  // The native stream (cudaStream_t) on which the device's own kernels enqueue work; null if there
  // is none.
  virtual void* stream() { return nullptr; }
  // The element loops of the kernels that all devices share (kernels/lib/device_primitives.h). Null
  // on the CPU, whose kernels contain these loops, and on devices that share no such kernel.
  virtual const DevicePrimitives* primitives() const { return nullptr; }
  // Wraps a kernel when it is created, with what the device does around each run: selecting itself
  // for the thread, checking for launch errors. The result has the same form.
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

#endif  // WEIR_CORE_RUNTIME_DEVICE_H_
