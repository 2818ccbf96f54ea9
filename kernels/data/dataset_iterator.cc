#include <mutex>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weir/core/runtime/resource.h"
#include "weir/kernels/data/dataset_ahead.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/waiter_queue.h"

// Iterators as resources of a session.
namespace weir {

namespace {

// The state of an iteration over a dataset.
class IteratorState final : public Resource {
 public:
  explicit IteratorState(std::string name) : name_(std::move(name)) {}

  std::string Describe() const override { return "iterator '" + name_ + "'"; }
  void Clear() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    iterator_ = nullptr;
    dataset_ = nullptr;
  }
  // Restarts at the beginning of the dataset.
  absl::Status Start(DatasetPtr dataset) {
    WEIR_ASSIGN_OR_RETURN(std::unique_ptr<DatasetIterator> iterator, dataset->Iterate());
    const std::lock_guard<std::mutex> lock(mutex_);
    iterator_ = std::move(iterator);
    dataset_ = std::move(dataset);
    return absl::OkStatus();
  }
  // Starts at the beginning unless already started.
  absl::Status StartOnce(const std::function<absl::StatusOr<DatasetPtr>()>& make) {
    const std::lock_guard<std::mutex> start(start_mutex_);
    if (started()) return absl::OkStatus();
    WEIR_ASSIGN_OR_RETURN(DatasetPtr dataset, make());
    return Start(std::move(dataset));
  }
  absl::StatusOr<Tensors> Next(const StepInfo& step, const Node& caller) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (iterator_ == nullptr) {
      return FailedPrecondition(
          "GetNext() failed because the iterator has not been initialized. Ensure that you have "
          "run the initializer operation for this iterator before getting the next element.");
    }
    WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, iterator_->Next({step, caller, ahead_}));
    if (!element) return OutOfRange("End of sequence");
    return *std::move(element);
  }

 private:
  bool started() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return iterator_ != nullptr;
  }

  const std::string name_;
  std::mutex start_mutex_;
  std::mutex mutex_;
  AheadGroup ahead_;
  DatasetPtr dataset_;  // referenced by the iterator
  std::unique_ptr<DatasetIterator> iterator_;
};

absl::StatusOr<ResourceHandle> HandleOf(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const ResourceName name, NameOfResource(init.node));
  ResourceHandle handle;
  handle.device = init.device.text();
  handle.container = name.container;
  handle.name = name.name;
  handle.resource =
      name.SelectMap(init.resources).LookupOrCreate<IteratorState>(name.container, name.name, [&] {
        return std::make_shared<IteratorState>(name.name);
      });
  return handle;
}

absl::StatusOr<Kernel> MakeIteratorHandle(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(ResourceHandle handle, HandleOf(init));
  return Kernel::Constant(Tensor::Scalar(std::move(handle)));
}

// The dataset comes from a function, which is called when the iterator is first used.
absl::StatusOr<Kernel> MakeOneShotIterator(const KernelInit& init) {
  if (!init.attr<std::string>("shared_name").empty()) {
    return InvalidArgument("OneShotIteratorOp does not currently support the 'shared_name' attr.");
  }
  const auto factory = init.attr<FunctionRef>("dataset_factory");
  WEIR_ASSIGN_OR_RETURN(Function * function, FindFunction(init, factory));
  if (function->result_types() != DataTypes{DT_VARIANT} || !function->arg_types().empty()) {
    return InvalidArgument("The `dataset_factory` function '", factory.name,
                           "' must take nothing and return a single dataset");
  }
  WEIR_ASSIGN_OR_RETURN(const ResourceHandle handle, HandleOf(init));
  return Kernel([function, handle](KernelContext& c) -> absl::Status {
    auto* state = static_cast<IteratorState*>(handle.resource.get());
    WEIR_RETURN_IF_ERROR(state->StartOnce([&]() -> absl::StatusOr<DatasetPtr> {
      Tensors made;
      WEIR_RETURN_IF_ERROR(function->Call(c.step(), c.node(), {}, &made));
      return DatasetIn(made[0]);
    }));
    c.SetOutput(0, Tensor::Scalar(handle));
    return absl::OkStatus();
  });
}

absl::Status MakeIterator(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(DatasetPtr dataset, DatasetIn(c.input(0)));
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<IteratorState> state, c.resource<IteratorState>(1));
  return state->Start(std::move(dataset));
}

absl::StatusOr<Kernel> MakeGetNext(const KernelInit& init) {
  return Kernel([spec = ElementSpec::Of(init.node)](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<IteratorState> state, c.resource<IteratorState>(0));
    WEIR_ASSIGN_OR_RETURN(Tensors element, state->Next(c.step(), c.node()));
    WEIR_RETURN_IF_ERROR(spec.Check(element));
    for (int i = 0; i < c.num_outputs(); ++i) c.SetOutput(i, std::move(element[i]));
    return absl::OkStatus();
  });
}

// A string handle that identifies the iterator within the same session, so that a feed can select
// an iterator.
constexpr absl::string_view kHandlePrefix = "weir-iterator";

absl::Status ToStringHandle(KernelContext& c) {
  WEIR_RETURN_IF_ERROR(c.resource<IteratorState>(0).status());
  const ResourceHandle& handle = *c.input_data<ResourceHandle>(0);
  c.SetOutput(
      0, Tensor::Scalar(absl::StrCat(kHandlePrefix, "\n", handle.container, "\n", handle.name)));
  return absl::OkStatus();
}

absl::Status FromStringHandle(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::string text, ReadString(c.input(0), "string_handle"));
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits('\n', 2));
  if (parts.size() != 3 || parts[0] != kHandlePrefix) {
    return InvalidArgument(
        "Could not parse string_handle as a valid ResourceHandle: it is not an iterator handle");
  }
  ResourceHandle handle;
  handle.device = c.device().text();
  handle.container = parts[1];
  handle.name = parts[2];
  for (ResourceMap* map : {&c.resources(), &SharedState(c.resources())}) {
    if (handle.resource == nullptr)
      handle.resource = map->Lookup<IteratorState>(handle.container, handle.name);
  }
  if (handle.resource == nullptr) return NotFound("iterator '", handle.name, "' not found");
  c.SetOutput(0, Tensor::Scalar(std::move(handle)));
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeFromStringHandle(const KernelInit& init) {
  const size_t types = init.attr<DataTypes>("output_types").size();
  const size_t shapes = init.attr<std::vector<Shape>>("output_shapes").size();
  if (types != shapes && types != 0 && shapes != 0) {
    return InvalidArgument(
        "If both 'output_types' and 'output_shapes' are set, they must have the same length, not ",
        types, " and ", shapes);
  }
  return Kernel(FromStringHandle);
}

}  // namespace

void AddDatasetIteratorKernels(KernelRegistry* r) {
  r->Add("Iterator", kCpu, MakeIteratorHandle);
  r->Add("IteratorFromStringHandle", kCpu, MakeFromStringHandle);
  r->Add("IteratorFromStringHandleV2", kCpu, MakeFromStringHandle);
  r->Add("IteratorGetNext", kCpu, MakeGetNext);
  r->Add("IteratorGetNextSync", kCpu, MakeGetNext);
  r->Add("IteratorToStringHandle", kCpu, ToStringHandle);
  r->Add("IteratorV2", kCpu, MakeIteratorHandle);
  r->Add("MakeIterator", kCpu, MakeIterator);
  r->Add("OneShotIterator", kCpu, MakeOneShotIterator);
}

}  // namespace weir
