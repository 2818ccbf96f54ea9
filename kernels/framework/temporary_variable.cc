#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"

// The temporary variables of a step: a handle keeps its variable alive while the step needs it.
namespace weir {

namespace {

// The temporary variables of the steps in flight. A step is identified by its own Cancellation.
class TemporaryVariables : public Resource {
 public:
  std::string Describe() const override { return "the temporary variables of steps"; }
  void Clear() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    entries_.clear();
  }

  // ALREADY_EXISTS if another node has created a variable of that name in this step and it has not
  // been destroyed. The same node may create one per loop iteration.
  absl::Status Add(const KernelContext& c, const std::shared_ptr<VariableState>& variable) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(entries_, [](const auto& entry) { return entry.second.variable.expired(); });
    Entry& entry = entries_[{c.step().cancellation, variable->name()}];
    const std::shared_ptr<VariableState> other = entry.variable.lock();
    if (other != nullptr && entry.node != &c.node() && other->IsInitialized()) {
      return absl::AlreadyExistsError(absl::StrCat(
          "Resource tmp_var/", variable->name(), " already exists: node '", entry.node->name(),
          "' has created a temporary variable of this var_name in this step"));
    }
    entry = {&c.node(), variable};
    return absl::OkStatus();
  }

 private:
  struct Entry {
    const Node* node = nullptr;
    std::weak_ptr<VariableState> variable;
  };
  std::mutex mutex_;
  std::map<std::pair<const Cancellation*, std::string>, Entry> entries_;
};

absl::StatusOr<Kernel> MakeTemporaryVariable(const KernelInit& init) {
  const DataType dtype = init.attr<DataType>("dtype");
  const Shape shape = init.attr<Shape>("shape");
  if (!shape.IsFullyDefined()) {
    return InvalidArgument("the shape of a temporary variable must be fully defined, not ",
                           shape.ToString());
  }
  std::string name = init.attr<std::string>("var_name");
  if (name.empty()) name = init.node.name();
  const auto all = init.resources.LookupOrCreate<TemporaryVariables>(
      ResourceMap::kDefaultContainer, "temporary variables",
      [] { return std::make_shared<TemporaryVariables>(); });
  return Kernel([=](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(Tensor value, c.AllocateTemp(dtype, shape));
    if (value.host_accessible()) ClearElements(c.pool(), value);
    const auto variable = std::make_shared<VariableState>(name, dtype, shape);
    {
      const MutexLock lock(variable->mutex());
      variable->Set(std::move(value));
    }
    WEIR_RETURN_IF_ERROR(all->Add(c, variable));
    ResourceHandle handle;
    handle.name = name;
    handle.resource = variable;
    c.SetOutput(0, Tensor::Scalar(std::move(handle)));
    return absl::OkStatus();
  });
}

absl::StatusOr<Kernel> MakeDestroyTemporaryVariable(const KernelInit& init) {
  const std::string name = init.attr<std::string>("var_name");
  if (name.empty()) return InvalidArgument("Missing var_name attribute");
  return Kernel([name](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<VariableState> v, c.variable(0));
    if (v->name() != name || !v->IsInitialized())
      return NotFound("Resource ", name, ", a temporary variable, does not exist.");
    WEIR_ASSIGN_OR_RETURN(Tensor value, v->Read());
    v->Clear();
    c.SetOutput(0, std::move(value));
    return absl::OkStatus();
  });
}

}  // namespace

void AddTempVariableKernels(KernelRegistry* r) {
  r->Add("TemporaryVariable", kCpu, MakeTemporaryVariable);
  r->Add("DestroyTemporaryVariable", kCpu, MakeDestroyTemporaryVariable).Writes({0});
}

}  // namespace weir
