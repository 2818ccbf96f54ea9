#include <algorithm>

#include "weir/core/runtime/resource.h"
#include "weir/core/tensor/variant.h"
#include "weir/kernels/containers/stored_values.h"
#include "weir/kernels/data/iterator_handle.h"
#include "weir/kernels/data/iterator_state.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/waiter_queue.h"

// Iterators as resources of a session.
namespace weir {

namespace {

std::shared_ptr<IteratorState> NewState(const ResourceName& name) {
  return std::make_shared<IteratorState>(name);
}

absl::StatusOr<Kernel> MakeIteratorHandle(const KernelInit& init) {
  return MakeHandleKernel<IteratorState>(init, NewState);
}

absl::Status AnonymousIterator(KernelContext& c) {
  const ResourceName name = {.container = "", .name = "anonymous iterator"};
  return SetAnonymous(c, name.name, NewState(name));
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

// ---- saving and restoring

constexpr char kPositionType[] = "weir::IteratorPosition";  // of the variant

absl::Status Serialize(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<IteratorState> state, c.resource<IteratorState>(0));
  WEIR_ASSIGN_OR_RETURN(Tensors position, state->Save());
  Tensor serialized(DT_VARIANT, Shape({1}));
  *serialized.data<Variant>() =
      Variant{.type_name = kPositionType, .metadata = "", .value = std::move(position)};
  c.SetOutput(0, std::move(serialized));
  return absl::OkStatus();
}

absl::Status Deserialize(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<IteratorState> state, c.resource<IteratorState>(0));
  const Tensor& serialized = c.input(1);
  const Tensors* position = nullptr;
  if (serialized.dtype() == DT_VARIANT && serialized.num_elements() == 1) {
    const Variant& variant = *serialized.data<Variant>();
    if (variant.type_name == kPositionType) position = std::any_cast<Tensors>(&variant.value);
  }
  if (position == nullptr)
    return InvalidArgument("`serialized` must hold one ", kPositionType, ", not ",
                           serialized.Description());
  return state->Restore(c.step(), c.node(), *position);
}

}  // namespace

void AddDatasetIteratorKernels(KernelRegistry* r) {
  for (const char* op : {"AnonymousIterator", "AnonymousIteratorV2", "AnonymousIteratorV3"})
    r->Add(op, kCpu, AnonymousIterator);
  r->Add("DeleteIterator", kCpu, DeleteResource<IteratorState>);
  for (const char* op : {"ExperimentalIteratorGetDevice", "IteratorGetDevice"})
    r->Add(op, kCpu, GetDevice);
  r->Add("DeserializeIterator", kCpu, Deserialize);
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
  r->Add("SerializeIterator", kCpu, Serialize);
}

}  // namespace weir
