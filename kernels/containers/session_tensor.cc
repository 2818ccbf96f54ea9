#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weir/core/runtime/resource.h"
#include "weir/core/tensor/mutex.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

// Values that stay with the session until they are deleted. In contrast to TensorFlow, whose
// session forgets a value if the step did not fetch its handle, all of them stay.
namespace weir {

namespace {

class SessionTensors final : public Resource {
 public:
  static std::shared_ptr<SessionTensors> Of(KernelContext& c) {
    constexpr char kContainer[] = "session tensors";  // which no reset clears
    return c.resources().LookupOrCreate<SessionTensors>(
        kContainer, "", [] { return std::make_shared<SessionTensors>(); });
  }

  std::string Describe() const override { return "the tensors of a session"; }
  void Clear() override {
    const MutexLock lock(mutex_);
    tensors_.clear();
  }

  // Keeps a tensor, which owns its memory, and returns its handle: "node;number;device".
  std::string Add(const std::string& node, const std::string& device, Tensor value) {
    const MutexLock lock(mutex_);
    std::string handle = absl::StrCat(node, ";", next_++, ";", device);
    tensors_.emplace(handle, std::move(value));
    return handle;
  }
  absl::StatusOr<Tensor> Get(const std::string& handle) {
    const MutexLock lock(mutex_);
    const auto it = tensors_.find(handle);
    if (it != tensors_.end()) return it->second;
    return InvalidArgument("The tensor with handle '", handle, "' is not in the session store.");
  }
  absl::Status Delete(const std::string& handle) {
    const MutexLock lock(mutex_);
    if (tensors_.erase(handle) > 0) return absl::OkStatus();
    return InvalidArgument("Failed to delete a tensor with handle '", handle,
                           "' in the session store.");
  }

 private:
  Mutex mutex_;
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Tensor> tensors_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::string> Keep(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(Tensor value, c.Own(c.input(0)));
  return SessionTensors::Of(c)->Add(c.node().name(), c.device().text(), std::move(value));
}

absl::Status GetHandle(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(std::string handle, Keep(c));
  c.SetOutput(0, Tensor::Scalar(std::move(handle)));
  return absl::OkStatus();
}

absl::Status GetHandleV2(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(std::string name, Keep(c));
  ResourceHandle handle;
  handle.device = c.device().text();
  handle.name = std::move(name);
  handle.resource = SessionTensors::Of(c);
  c.SetOutput(0, Tensor::Scalar(std::move(handle)));
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeGet(const KernelInit& init) {
  const DataType dtype = init.attr<DataType>("dtype");
  return Kernel([dtype](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const std::string handle, ReadString(c.input(0), "handle"));
    WEIR_ASSIGN_OR_RETURN(Tensor value, SessionTensors::Of(c)->Get(handle));
    if (value.dtype() != dtype) {
      return InvalidArgument("The tensor with handle '", handle, "' has type ",
                             DataTypeName(value.dtype()), ", but dtype is ", DataTypeName(dtype));
    }
    c.SetOutput(0, std::move(value));
    return absl::OkStatus();
  });
}

absl::Status Delete(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::string handle, ReadString(c.input(0), "handle"));
  return SessionTensors::Of(c)->Delete(handle);
}

}  // namespace

void AddSessionTensorKernels(KernelRegistry* r) {
  r->Add("GetSessionHandle", kCpu, GetHandle);
  r->Add("GetSessionHandleV2", kCpu, GetHandleV2);
  r->Add("GetSessionTensor", kCpu, MakeGet);
  r->Add("DeleteSessionTensor", kCpu, Delete);
}

}  // namespace weir
