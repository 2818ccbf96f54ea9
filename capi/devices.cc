#include "absl/hash/hash.h"
#include "weir/capi/session.h"
#include "weir/core/graph/scope.h"

struct TF_DeviceList {
  struct Device {
    std::string name, type;
    int64_t memory_bytes;
  };
  std::vector<Device> devices;
};

using weir::capi::HaveAll;
using weir::capi::SetStatus;

namespace {

constexpr int64_t kCpuMemory = int64_t{256} << 20;  // what TensorFlow says of the CPU

// Returns the device; null, and an error, if there is none.
const TF_DeviceList::Device* At(absl::string_view function, const TF_DeviceList* list, int index,
                                TF_Status* status) {
  if (!HaveAll(function, {list}, status)) return nullptr;
  const int count = static_cast<int>(list->devices.size());
  if (index >= 0 && index < count) {
    SetStatus(status, absl::OkStatus());
    return &list->devices[index];
  }
  SetStatus(status, weir::InvalidArgument("index out of bounds: there are ", count,
                                          " devices, not ", index, " + 1"));
  return nullptr;
}

}  // namespace

TF_DeviceList* TF_SessionListDevices(TF_Session* session, TF_Status* status) {
  if (!HaveAll("TF_SessionListDevices", {session}, status)) return nullptr;
  auto* const list = new TF_DeviceList;
  for (const weir::Device* device : session->session->devices()) {
    const auto name = weir::DeviceName::Parse(device->text());
    const std::string type = name.ok() ? name->type.value_or("") : "";
    list->devices.push_back(
        {device->text(), type, type == "CPU" ? kCpuMemory : device->memory_limit()});
  }
  SetStatus(status, absl::OkStatus());
  return list;
}

void TF_DeleteDeviceList(TF_DeviceList* list) { delete list; }

int TF_DeviceListCount(const TF_DeviceList* list) {
  return HaveAll("TF_DeviceListCount", {list}) ? static_cast<int>(list->devices.size()) : -1;
}

const char* TF_DeviceListName(const TF_DeviceList* list, int index, TF_Status* status) {
  const auto* const device = At("TF_DeviceListName", list, index, status);
  return device == nullptr ? nullptr : device->name.c_str();
}

const char* TF_DeviceListType(const TF_DeviceList* list, int index, TF_Status* status) {
  const auto* const device = At("TF_DeviceListType", list, index, status);
  return device == nullptr ? nullptr : device->type.c_str();
}

int64_t TF_DeviceListMemoryBytes(const TF_DeviceList* list, int index, TF_Status* status) {
  const auto* const device = At("TF_DeviceListMemoryBytes", list, index, status);
  return device == nullptr ? -1 : device->memory_bytes;
}

uint64_t TF_DeviceListIncarnation(const TF_DeviceList* list, int index, TF_Status* status) {
  const auto* const device = At("TF_DeviceListIncarnation", list, index, status);
  return device == nullptr ? 0 : absl::HashOf(device->name);
}
