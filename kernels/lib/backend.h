#ifndef WEIR_KERNELS_LIB_BACKEND_H_
#define WEIR_KERNELS_LIB_BACKEND_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "weir/core/runtime/kernel.h"
#include "weir/core/tensor/api.h"

namespace WEIR_API weir {

// A kind of device: how its devices are created, and its kernels. Everything else that belongs to
// the kind is the Device's own: its allocator, copies, stream, and the loops of shared kernels.
// docs/add_a_device.md describes how to write one. Thread-safe.
//
// The CPU is not a backend: it is the first device of every session, and all others extend it.
class Backend {
 public:
  // `device_type` is the type in the names of the devices: "GPU" for "/device:GPU:0".
  explicit Backend(std::string device_type) : device_type_(std::move(device_type)) {}
  virtual ~Backend() = default;

  // The type in the names of its devices: "GPU".
  const std::string& device_type() const { return device_type_; }

  // Registers the kernels of the devices. `kernels` is layered over the CPU's kernels. Called once,
  // when the backend is added to a registry.
  virtual void AddKernels(KernelRegistry* kernels) const;

  // Creates the usable devices of this machine, named LocalDeviceName(device_type(), i, task); none
  // if it has none. Called once per session, which owns the devices; an error is the session's.
  virtual absl::StatusOr<std::vector<std::unique_ptr<Device>>> CreateDevices(
      const DeviceName& task) const = 0;

 private:
  const std::string device_type_;
};

// The backends that a session may use, in order of preference, and the kernels of all devices.
// Must not change once a session uses it (SessionOptions::backends).
//
//   auto backends = std::make_shared<BackendRegistry>(&BuiltinBackends());
//   absl::Status added = backends->Add(std::make_unique<NpuBackend>());
class BackendRegistry {
 public:
  // Creates a registry without backends: sessions run on the CPU.
  BackendRegistry();
  // Creates a registry that extends `base`, whose backends are preferred. `base` outlives it.
  explicit BackendRegistry(const BackendRegistry* base);
  // Creates a registry with the CPU's kernels: the built-in one.
  explicit BackendRegistry(std::unique_ptr<const Families<KernelRegistry>> cpu);
  ~BackendRegistry();
  BackendRegistry(const BackendRegistry&) = delete;
  BackendRegistry& operator=(const BackendRegistry&) = delete;

  // Adds a backend and its kernels. On an error nothing is added:
  //
  //   INVALID_ARGUMENT  null, or its device type is not an upper-case word: "NPU"
  //   ALREADY_EXISTS    there is a backend of that device type, or it is "CPU"
  absl::Status Add(std::unique_ptr<Backend> backend);

  // Returns the backend of the devices of this type, or null.
  const Backend* Find(absl::string_view device_type) const;
  // Returns the backends, those of `base` first.
  std::vector<const Backend*> All() const;
  // Returns the CPU's kernels and those of the backends.
  const KernelRegistry& kernels() const { return kernels_; }

  // Creates the devices of all backends. INTERNAL, with the backend, if a device is null, has
  // another type than its backend, or the name of another device.
  absl::StatusOr<std::vector<std::unique_ptr<Device>>> CreateDevices(const DeviceName& task) const;

 private:
  const BackendRegistry* const base_ = nullptr;
  KernelRegistry kernels_;
  std::vector<std::unique_ptr<Backend>> backends_;
};

// Returns the backends that are built in: GPUs under --config=cuda. Defined in kernels/registry.cc,
// which lists them.
const BackendRegistry& BuiltinBackends();

// ---- kernels that a device shares with the CPU (kernels/lib/shared_kernels.cc)

// Registers the CPU's kernels that need no more of a device than Device::primitives(): those that
// forward values, copy elements (slices, transposes, concatenations, gathers), hold variables,
// control the flow, and call functions. Kernels of int32 run on the CPU, with all arguments in host
// memory. `kernels` is layered over the CPU's kernels.
void AddSharedKernels(KernelRegistry* kernels, Place place);
// Registers the CPU's kernels for random numbers; they need DevicePrimitives::FillRandom.
void AddSharedRandomKernels(KernelRegistry* kernels, Place place);
// Registers the dense updates of optimizers; they need DevicePrimitives::Update.
void AddSharedUpdateKernels(KernelRegistry* kernels, Place place);

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_BACKEND_H_
