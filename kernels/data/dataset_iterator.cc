#include <algorithm>
#include <mutex>

#include "weir/core/runtime/resource.h"
#include "weir/kernels/containers/stored_values.h"
#include "weir/kernels/data/dataset_ahead.h"
#include "weir/kernels/data/iterator_handle.h"
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
  // Returns nullopt at the end.
  MaybeElement Next(const StepInfo& step, const Node& caller) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (iterator_ == nullptr) return Uninitialized("GetNext()");
    return iterator_->Next({step, caller, ahead_});
  }
  bool started() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return iterator_ != nullptr;
  }
  static absl::Status Uninitialized(absl::string_view call) {
    return FailedPrecondition(
        call,
        " failed because the iterator has not been initialized. Ensure that you have run the "
        "initializer operation for this iterator before getting the next element.");
  }

 private:
  const std::string name_;
  std::mutex start_mutex_;
  std::mutex mutex_;
  AheadGroup ahead_;
  DatasetPtr dataset_;  // referenced by the iterator
  std::unique_ptr<DatasetIterator> iterator_;
};

std::shared_ptr<IteratorState> NewState(const std::string& name) {
  return std::make_shared<IteratorState>(name);
}

absl::StatusOr<Kernel> MakeIteratorHandle(const KernelInit& init) {
  return MakeHandleKernel<IteratorState>(init, NewState);
}

absl::Status AnonymousIterator(KernelContext& c) {
  const std::string name = "anonymous iterator";
  return SetAnonymous(c, name, NewState(name));
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
  WEIR_ASSIGN_OR_RETURN(const Kernel of_handle, MakeIteratorHandle(init));
  const Tensor handle = of_handle.constant();
  return Kernel([function, handle](KernelContext& c) -> absl::Status {
    const ResourceHandle& to = handle.scalar<ResourceHandle>();
    auto* const state = static_cast<IteratorState*>(to.resource.get());
    WEIR_RETURN_IF_ERROR(state->StartOnce([&]() -> absl::StatusOr<DatasetPtr> {
      Tensors made;
      WEIR_RETURN_IF_ERROR(function->Call(c.step(), c.node(), {}, &made));
      return DatasetIn(made[0]);
    }));
    c.SetOutput(0, handle);
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
    WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, state->Next(c.step(), c.node()));
    if (!element) return OutOfRange("End of sequence");
    WEIR_RETURN_IF_ERROR(spec.Check(*element));
    for (int i = 0; i < c.num_outputs(); ++i) c.SetOutput(i, std::move((*element)[i]));
    return absl::OkStatus();
  });
}

absl::StatusOr<Kernel> MakeGetNextAsOptional(const KernelInit& init) {
  return Kernel([spec = ElementSpec::Of(init.node)](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<IteratorState> state, c.resource<IteratorState>(0));
    WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, state->Next(c.step(), c.node()));
    Optional optional;
    if (element) {
      WEIR_RETURN_IF_ERROR(spec.Check(*element));
      for (const Tensor& t : *element) {
        WEIR_ASSIGN_OR_RETURN(const int depth, NestingDepth(t));
        optional.depth = std::max(optional.depth, depth + 1);
      }
      optional.has_value = true;
      optional.values = *std::move(element);
    }
    c.SetOutput(0, VariantScalar(std::move(optional)));
    return absl::OkStatus();
  });
}

absl::Status GetDevice(KernelContext& c) {
  WEIR_RETURN_IF_ERROR(c.resource<IteratorState>(0).status());
  c.SetOutput(0, Tensor::Scalar(c.input_data<ResourceHandle>(0)->device));
  return absl::OkStatus();
}

// There is nothing that tunes an iterator, hence no model of it.
absl::Status GetModelProto(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<IteratorState> state, c.resource<IteratorState>(0));
  if (!state->started()) return IteratorState::Uninitialized("GetModelProto()");
  return NotFound(
      "Cannot find this iterator's analytical model. Did you disable autotune for the dataset used "
      "to create this iterator?");
}

constexpr absl::string_view kTextPrefix = "weir-iterator";

absl::Status ToStringHandle(KernelContext& c) {
  return HandleToText<IteratorState>(c, kTextPrefix);
}

absl::StatusOr<Kernel> MakeFromStringHandle(const KernelInit& init) {
  WEIR_RETURN_IF_ERROR(CheckTypesAndShapes(init));
  return Kernel([](KernelContext& c) { return HandleFromText<IteratorState>(c, kTextPrefix); });
}

}  // namespace

void AddDatasetIteratorKernels(KernelRegistry* r) {
  for (const char* op : {"AnonymousIterator", "AnonymousIteratorV2", "AnonymousIteratorV3"})
    r->Add(op, kCpu, AnonymousIterator);
  r->Add("DeleteIterator", kCpu, DeleteResource<IteratorState>);
  for (const char* op : {"ExperimentalIteratorGetDevice", "IteratorGetDevice"})
    r->Add(op, kCpu, GetDevice);
  r->Add("Iterator", kCpu, MakeIteratorHandle);
  r->Add("IteratorFromStringHandle", kCpu, MakeFromStringHandle);
  r->Add("IteratorFromStringHandleV2", kCpu, MakeFromStringHandle);
  r->Add("IteratorGetModelProto", kCpu, GetModelProto);
  r->Add("IteratorGetNext", kCpu, MakeGetNext);
  r->Add("IteratorGetNextAsOptional", kCpu, MakeGetNextAsOptional);
  r->Add("IteratorGetNextSync", kCpu, MakeGetNext);
  r->Add("IteratorToStringHandle", kCpu, ToStringHandle);
  r->Add("IteratorV2", kCpu, MakeIteratorHandle);
  r->Add("MakeIterator", kCpu, MakeIterator);
  r->Add("OneShotIterator", kCpu, MakeOneShotIterator);
  AddMultiDeviceIteratorKernels(r);
}

}  // namespace weir
