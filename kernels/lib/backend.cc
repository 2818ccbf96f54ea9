#include "weir/kernels/lib/backend.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "weir/core/graph/families.h"

namespace weir {

void Backend::AddKernels(KernelRegistry*) const {}

BackendRegistry::BackendRegistry() : kernels_(&BuiltinKernels()) {}
BackendRegistry::BackendRegistry(const BackendRegistry* base)
    : base_(base), kernels_(&base->kernels()) {}
BackendRegistry::BackendRegistry(std::unique_ptr<const Families<KernelRegistry>> cpu)
    : kernels_(std::move(cpu)) {}
BackendRegistry::~BackendRegistry() = default;

namespace {

// Device names are parsed in upper case.
bool IsDeviceType(absl::string_view text) {
  const auto is_word = [](char c) {
    return absl::ascii_isupper(c) || absl::ascii_isdigit(c) || c == '_';
  };
  return !text.empty() && absl::ascii_isupper(text[0]) &&
         std::all_of(text.begin(), text.end(), is_word);
}

}  // namespace

absl::Status BackendRegistry::Add(std::unique_ptr<Backend> backend) {
  if (backend == nullptr) return InvalidArgument("the backend is null");
  const std::string& type = backend->device_type();
  if (!IsDeviceType(type)) {
    return InvalidArgument("the device type of a backend is an upper-case word, as in 'GPU', not '",
                           type, "'");
  }
  if (type == kCpu.name() || Find(type) != nullptr) {
    return absl::AlreadyExistsError(
        absl::StrCat("a backend for devices of type '", type, "' is registered already"));
  }
  backend->AddKernels(&kernels_);
  backends_.push_back(std::move(backend));
  return absl::OkStatus();
}

const Backend* BackendRegistry::Find(absl::string_view device_type) const {
  for (const Backend* backend : All()) {
    if (backend->device_type() == device_type) return backend;
  }
  return nullptr;
}

std::vector<const Backend*> BackendRegistry::All() const {
  std::vector<const Backend*> all;
  if (base_ != nullptr) all = base_->All();
  for (const auto& backend : backends_) all.push_back(backend.get());
  return all;
}

absl::StatusOr<std::vector<std::unique_ptr<Device>>> BackendRegistry::CreateDevices(
    const DeviceName& task) const {
  std::vector<std::unique_ptr<Device>> devices;
  for (const Backend* backend : All()) {
    WEIR_ASSIGN_OR_RETURN(auto created, backend->CreateDevices(task));
    for (std::unique_ptr<Device>& device : created) {
      if (device == nullptr) {
        return Internal("the backend for devices of type '", backend->device_type(),
                        "' created a null device");
      }
      if (device->name().type != backend->device_type()) {
        return Internal("the backend for devices of type '", backend->device_type(),
                        "' created the device ", device->text());
      }
      const auto is_same = [&](const auto& other) { return other->text() == device->text(); };
      if (std::any_of(devices.begin(), devices.end(), is_same)) {
        return Internal("the backend for devices of type '", backend->device_type(),
                        "' created two devices ", device->text());
      }
      devices.push_back(std::move(device));
    }
  }
  return devices;
}

}  // namespace weir
