#include "weir/core/runtime/device.h"

#include <cstring>

#include "weir/core/runtime/kernel.h"

namespace weir {

Kernel Device::Wrap(const KernelInit&, Kernel kernel) { return kernel; }

namespace {

class CpuDevice : public Device {
 public:
  explicit CpuDevice(DeviceName name) : Device(std::move(name), kCpu) {}
  Allocator& allocator() override { return HostAllocator(); }
  std::string Description() const override { return "host processor"; }
  void CopyFromHost(const Tensor& from, const Tensor& to, Done done) override {
    done(CopyOnDevice(from, to));
  }
  void CopyToHost(const Tensor& from, const Tensor& to, Done done) override {
    done(CopyOnDevice(from, to));
  }
  absl::Status CopyOnDevice(const Tensor& from, const Tensor& to) override {
    if (from.num_bytes() != to.num_bytes()) {
      return Internal("copy between ", from.Description(), " and ", to.Description());
    }
    if (from.num_bytes() > 0 && from.raw() != to.raw()) {
      std::memcpy(const_cast<void*>(to.raw()), from.raw(), from.num_bytes());
    }
    return absl::OkStatus();
  }
};

}  // namespace

DeviceName LocalDeviceName(absl::string_view type, int id, const DeviceName& task) {
  DeviceName name{.job = "localhost", .replica = 0, .task = 0};
  name.MergeFrom(task);
  name.type = std::string(type);
  name.id = id;
  return name;
}

std::unique_ptr<Device> NewCpuDevice(const DeviceName& task) {
  return std::make_unique<CpuDevice>(LocalDeviceName("CPU", 0, task));
}

}  // namespace weir
