#include "weir/core/runtime/resource.h"

#include <cstring>

#include "weir/core/runtime/device.h"

namespace weir {

namespace {

absl::Status CopyValue(const Tensor& from, Tensor* to, Device& device) {
  if (!IsPlain(from.dtype())) {
    *to = from.DeepCopy();
    return absl::OkStatus();
  }
  return device.CopyOnDevice(from, *to);
}

}  // namespace

void VariableState::Clear() {
  const MutexLock lock(mutex_);
  value_ = Tensor();
}

absl::Status VariableState::Uninitialized() const {
  return FailedPrecondition("Attempting to use uninitialized value ", name_);
}

absl::StatusOr<Tensor*> VariableState::Writable(Device& device) {
  if (!value_.initialized()) return Uninitialized();
  if (!value_.OwnsBufferAlone()) {
    Allocator& allocator = IsPlain(value_.dtype()) ? device.allocator() : HostAllocator();
    WEIR_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(allocator, value_.dtype(), value_.shape()));
    WEIR_RETURN_IF_ERROR(CopyValue(value_, &copy, device));
    value_ = std::move(copy);
  }
  return &value_;
}

absl::Status VariableState::Assign(const Tensor& value, Device& device) {
  const bool fits = value_.OwnsBufferAlone() && value_.dtype() == value.dtype() &&
                    value_.num_elements() == value.num_elements() && IsPlain(value.dtype());
  if (fits) {
    if (value_.shape() != value.shape()) value_ = value_.Reshaped(value.shape());
    return CopyValue(value, &value_, device);
  }
  Allocator& allocator = IsPlain(value.dtype()) ? device.allocator() : HostAllocator();
  WEIR_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(allocator, value.dtype(), value.shape()));
  WEIR_RETURN_IF_ERROR(CopyValue(value, &copy, device));
  value_ = std::move(copy);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> VariableState::Read() {
  const MutexLock lock(mutex_);
  if (!value_.initialized()) return Uninitialized();
  return value_;
}

bool VariableState::IsInitialized() {
  const MutexLock lock(mutex_);
  return value_.initialized();
}

std::shared_ptr<Resource> ResourceMap::LookupOrCreateErased(
    absl::string_view container, std::type_index type, absl::string_view name,
    const std::function<std::shared_ptr<Resource>()>& make) {
  const MutexLock lock(mutex_);
  if (container.empty()) container = kDefaultContainer;
  std::shared_ptr<Resource>& slot =
      containers_[std::string(container)][Key(type, std::string(name))];
  if (slot == nullptr) slot = make();
  return slot;
}

std::shared_ptr<Resource> ResourceMap::LookupErased(absl::string_view container,
                                                    std::type_index type, absl::string_view name) {
  const MutexLock lock(mutex_);
  if (container.empty()) container = kDefaultContainer;
  const auto it = containers_.find(container);
  if (it == containers_.end()) return nullptr;
  const auto found = it->second.find(Key(type, std::string(name)));
  return found == it->second.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<Resource>> ResourceMap::AllErased(std::type_index type) {
  const MutexLock lock(mutex_);
  std::map<std::string, std::shared_ptr<Resource>> by_name;
  for (const auto& [container, resources] : containers_) {
    for (const auto& [key, resource] : resources) {
      if (key.first == type) by_name.emplace(key.second + '\0' + container, resource);
    }
  }
  std::vector<std::shared_ptr<Resource>> out;
  for (auto& [name, resource] : by_name) out.push_back(std::move(resource));
  return out;
}

// Holders of a reference find the resource empty.
void ResourceMap::Reset(const std::vector<std::string>& containers) {
  std::vector<std::shared_ptr<Resource>> doomed;
  {
    const MutexLock lock(mutex_);
    const std::vector<std::string> names =
        containers.empty() ? std::vector<std::string>{kDefaultContainer} : containers;
    for (const std::string& name : names) {
      const auto it = containers_.find(name);
      if (it == containers_.end()) continue;
      for (const auto& [key, resource] : it->second) doomed.push_back(resource);
      containers_.erase(it);
    }
  }
  for (const auto& resource : doomed) resource->Clear();
}

}  // namespace weir
