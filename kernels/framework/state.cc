#include <algorithm>
#include <cstring>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/device_primitives.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/row_update.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/lib/variable_access.h"
#include "weir/kernels/lib/waiter_queue.h"

// Variables: handles to them, reads and assignments. Resource handles and references are the same
// here: a scalar DT_RESOURCE tensor that holds the variable's state. Consumers of the value of a
// reference get it through a read that the Plan inserts; the kernels below that take a reference
// get the handle, and forward it as their output.
namespace weir {

namespace {

absl::StatusOr<Kernel> MakeVariable(const KernelInit& init) {
  const Node& node = init.node;
  ResourceHandle handle;
  if (node.op_name() == "VarHandleOp") {
    handle.container = node.attr_or<std::string>("container", "");
  } else {
    WEIR_ASSIGN_OR_RETURN(handle.container, ContainerOf(node));
  }
  handle.name = node.attr_or<std::string>("shared_name", "");
  if (handle.name.empty()) handle.name = node.name();
  handle.device = init.device.text();
  const DataType dtype = init.attr<DataType>("dtype");
  Shape shape = init.attr<Shape>("shape");
  if (node.op_name() == "Variable" && shape.IsScalar()) shape = Shape::UnknownRank();
  auto state =
      SharedState(init.resources).LookupOrCreate<VariableState>(handle.container, handle.name, [&] {
        return std::make_shared<VariableState>(handle.name, dtype, shape, init.device.is_host());
      });
  if (state->dtype() != dtype || !state->shape().IsCompatibleWith(shape)) {
    return InvalidArgument(
        "Trying to access variable ", handle.name, " with wrong dtype or shape. Expected ",
        DataTypeName(state->dtype()), state->shape().ToString(), " got ", DataTypeName(dtype),
        shape.ToString(), ": another node with the same container and name created it");
  }
  handle.resource = std::move(state);
  return Kernel::Constant(Tensor::Scalar(std::move(handle)));
}

absl::Status WrongType(const VariableState& v, DataType got) {
  return InvalidArgument("Trying to access variable ", v.name(), " with wrong dtype. Expected ",
                         DataTypeName(v.dtype()), " got ", DataTypeName(got));
}

absl::Status ReadVariable(KernelContext& c, DataType dtype) {
  VariableState* v = c.variable_or_null(0);
  if (v == nullptr) return c.variable(0).status();
  if (v->dtype() != dtype) return WrongType(*v, dtype);
  const MutexLock lock(v->mutex());
  if (!v->initialized()) return UninitializedVariable(c, 0, *v);
  WEIR_RETURN_IF_ERROR(CheckReachable(c, 0, *v));
  c.SetOutput(0, v->value());
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeRead(const KernelInit& init) {
  const DataType dtype = init.attr<DataType>("dtype");
  return Kernel([dtype](KernelContext& c) -> absl::Status { return ReadVariable(c, dtype); });
}

absl::Status IsInitialized(KernelContext& c) {
  VariableState* v = c.variable_or_null(0);
  const bool initialized = v != nullptr && v->IsInitialized();
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
  *out->data<bool>() = initialized;
  return absl::OkStatus();
}

absl::Status DestroyResource(KernelContext& c, bool ignore_lookup_error) {
  const Tensor& handle = c.input(0);
  const bool is_handle = handle.dtype() == DT_RESOURCE && handle.num_elements() == 1;
  const std::shared_ptr<Resource> resource =
      is_handle ? handle.data<ResourceHandle>()->resource : nullptr;
  if (resource == nullptr) {
    return ignore_lookup_error ? absl::OkStatus()
                               : NotFound("The resource to destroy does not exist");
  }
  if (!ignore_lookup_error && c.variable_or_null(0) != nullptr) {
    WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<VariableState> variable, c.variable(0));
    const MutexLock lock(variable->mutex());
    if (!variable->initialized()) {
      const ResourceHandle& h = *handle.data<ResourceHandle>();
      return NotFound("Resource ",
                      h.container.empty() ? ResourceMap::kDefaultContainer : h.container, "/",
                      h.name, " does not exist.");
    }
  }
  resource->Clear();
  return absl::OkStatus();
}

absl::Status VariableShapeKernel(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<VariableState> v, c.variable(0));
  const MutexLock lock(v->mutex());
  if (!v->initialized()) return UninitializedVariable(c, 0, *v);
  const auto dims = v->value().shape().dims();
  WEIR_ASSIGN_OR_RETURN(Tensor * out,
                        c.AllocateOutput(0, Shape({static_cast<int64_t>(dims.size())})));
  if (out->dtype() == DT_INT64) {
    std::copy(dims.begin(), dims.end(), out->data<int64_t>());
    return absl::OkStatus();
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] > INT32_MAX) {
      return InvalidArgument("VariableShape output type is 32-bit but dim ", i, " is ", dims[i]);
    }
    out->data<int32_t>()[i] = static_cast<int32_t>(dims[i]);
  }
  return absl::OkStatus();
}

// Returns whether the variable may share a step-invariant value (KernelInit::step_invariant_inputs)
// until its next write, which makes a copy. So a variable that is initialized from constants and
// never trained has no memory of its own. Only a variable without memory of its own shares the
// value (one that is reset in each step keeps its own memory), and only if the value's memory comes
// from the variable's allocator: wrapped memory may map the same pages repeatedly.
bool MayShare(const KernelContext& c, const VariableState& v, const Tensor& value) {
  const Buffer* const buffer = value.buffer().get();
  return buffer != nullptr && !buffer->transient() &&
         buffer->allocator() == &c.device().allocator() && !v.value().OwnsBufferAlone();
}

// Moves the value's memory to the variable if only this step holds it, or if it is `step_invariant`
// and may be shared. Otherwise copies the value, into the variable's own memory if it fits there
// and has no readers.
absl::Status Store(KernelContext& c, VariableState& v, const Tensor& value, bool step_invariant) {
  const bool moves = value.OwnsBufferAlone() || (step_invariant && MayShare(c, v, value));
  if (!moves && IsPlain(value.dtype())) return v.Assign(value, c.device());
  WEIR_ASSIGN_OR_RETURN(Tensor own, c.Own(value));
  v.Set(std::move(own));
  return absl::OkStatus();
}

struct AssignConfig {
  DataType dtype;
  bool is_ref;
  bool validate_shape;
  bool value_is_step_invariant;
};

absl::Status Assign(KernelContext& c, const AssignConfig& config) {
  WEIR_ASSIGN_OR_RETURN(const LockedVariables locked, LockedVariables::Lock(c, 1, config.dtype));
  const Tensor& value = c.input(1);
  WEIR_RETURN_IF_ERROR(
      CheckAssignable(locked[0], value.shape(), config.is_ref, config.validate_shape));
  WEIR_RETURN_IF_ERROR(Store(c, locked[0], value, config.value_is_step_invariant));
  if (config.is_ref) c.SetOutput(0, c.input(0));
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeAssign(const KernelInit& init) {
  const bool is_ref = init.node.op_name() == "Assign";
  const AssignConfig config{init.attr<DataType>(is_ref ? "T" : "dtype"), is_ref,
                            init.attr<bool>("validate_shape"), init.is_step_invariant(1)};
  return Kernel([config](KernelContext& c) -> absl::Status { return Assign(c, config); });
}

absl::Status AssignUpdate(KernelContext& c, RowOp op, DataType dtype, bool is_ref) {
  WEIR_ASSIGN_OR_RETURN(const LockedVariables locked, LockedVariables::Lock(c, 1, dtype));
  WEIR_RETURN_IF_ERROR(locked.CheckInitialized(c, 0));
  const Tensor& delta = c.input(1);
  if (locked[0].value().shape() != delta.shape()) {
    return InvalidArgument("Cannot update variable with shape ",
                           locked[0].value().shape().ToString(), " using a Tensor with shape ",
                           delta.shape().ToString(), ", shapes must be equal. (variable ",
                           locked[0].name(), ")");
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * value, locked.Writable(c, 0));
  if (const DevicePrimitives* const device = c.device().primitives()) {
    const auto combine = op == RowOp::kAdd ? &DevicePrimitives::Add : &DevicePrimitives::Subtract;
    if (!(device->*combine)(dtype, value->raw(), delta.raw(), delta.num_elements())) {
      return Unimplemented("no update kernel for variables of type ", DataTypeName(dtype), " on ",
                           c.device().text());
    }
    if (is_ref) c.SetOutput(0, c.input(0));
    return absl::OkStatus();
  }
  const size_t size = ElementSize(dtype);
  char* to = static_cast<char*>(value->raw());
  const char* from = static_cast<const char*>(delta.raw());
  c.pool().ParallelFor(
      delta.num_elements(), 0.4,
      [&](int64_t begin, int64_t end) {
        CombineRow(op, dtype, to + static_cast<size_t>(begin) * size,
                   from + static_cast<size_t>(begin) * size, end - begin, false);
      },
      64);
  if (is_ref) c.SetOutput(0, c.input(0));
  return absl::OkStatus();
}

template <RowOp kOp, bool kIsRef>
absl::StatusOr<Kernel> MakeAssignUpdate(const KernelInit& init) {
  const DataType dtype = init.attr<DataType>(kIsRef ? "T" : "dtype");
  if (!RowOpSupports(kOp, dtype)) {
    return Unimplemented("No OpKernel for ", init.node.Label(), " with type ", DataTypeName(dtype));
  }
  return Kernel(
      [dtype](KernelContext& c) -> absl::Status { return AssignUpdate(c, kOp, dtype, kIsRef); });
}

template <class T>
absl::Status CountUpTo(KernelContext& c, T limit) {
  WEIR_ASSIGN_OR_RETURN(const LockedVariables locked,
                        LockedVariables::Lock(c, 1, DataTypeOf<T>::value));
  WEIR_RETURN_IF_ERROR(locked.CheckInitialized(c, 0));
  if (locked[0].value().rank() != 0) {
    return InvalidArgument("CountUpTo: variable ", locked[0].name(),
                           " must be a scalar, but has shape ",
                           locked[0].value().shape().ToString());
  }
  const T now = locked[0].value().template scalar<T>();
  if (now >= limit) return OutOfRange("Reached limit of ", limit);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
  *out->data<T>() = now;
  WEIR_ASSIGN_OR_RETURN(Tensor * value, locked.Writable(c, 0));
  *value->data<T>() = now + 1;
  return absl::OkStatus();
}

template <class T>
absl::StatusOr<Kernel> MakeCountUpTo(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const int limit, NarrowAttr(init.node, "limit"));
  return Kernel([limit](KernelContext& c) -> absl::Status { return CountUpTo<T>(c, T{limit}); });
}

// Slice i of the output is the slice at offsets[i]. The variable stays locked: with a snapshot, a
// concurrent writer would have to copy the whole variable.
void CopySlices(KernelContext& c, const Tensor& from, const std::vector<int64_t>& offsets,
                int64_t width, Tensor* to) {
  const size_t bytes = static_cast<size_t>(width) * ElementSize(from.dtype());
  const size_t size = ElementSize(from.dtype());
  const auto copy = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      char* target = static_cast<char*>(to->raw()) + static_cast<size_t>(i) * bytes;
      const char* source =
          static_cast<const char*>(from.raw()) + static_cast<size_t>(offsets[i]) * size;
      CopyElements(from.dtype(), source, target, width);
    }
  };
  c.pool().ParallelFor(static_cast<int64_t>(offsets.size()), 4.0 + 0.1 * static_cast<double>(bytes),
                       copy);
}

absl::Status Gather(KernelContext& c, DataType dtype, int64_t batch_dims) {
  WEIR_ASSIGN_OR_RETURN(const LockedVariables locked, LockedVariables::Lock(c, 1, dtype));
  WEIR_RETURN_IF_ERROR(locked.CheckInitialized(c, 0));
  const Tensor& params = locked[0].value();
  const Tensor& indices = c.input(1);
  const Shape& shape = params.shape();
  const int batch = static_cast<int>(batch_dims);
  if (shape.rank() < 1) return InvalidArgument("params must be at least 1 dimensional");
  if (batch_dims < 0 || batch_dims >= shape.rank() || batch_dims > indices.rank() ||
      shape.Sub(0, batch) != indices.shape().Sub(0, batch)) {
    return InvalidArgument("batch_dims ", batch_dims, " does not fit params of shape ",
                           shape.ToString(), " and indices of shape ", indices.shape().ToString());
  }
  const int64_t width = shape.Sub(batch + 1).num_elements();
  const int64_t batches = shape.Sub(0, batch).num_elements();
  const Shape out_shape = indices.shape().Concatenate(shape.Sub(batch + 1));
  if (const DevicePrimitives* const device = c.device().primitives()) {
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, out_shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    device->Gather({.batch = batches,
                    .limit = shape.dim(batch),
                    .inner = width,
                    .count = indices.num_elements() / batches,
                    .size = ElementSize(dtype),
                    .index_type = indices.dtype(),
                    .params = params.raw(),
                    .indices = indices.raw(),
                    .out = out->raw()});
    return absl::OkStatus();
  }
  WEIR_ASSIGN_OR_RETURN(std::vector<int64_t> rows, RowIndices(indices, shape.dim(batch)));
  const int64_t per_batch = batches == 0 ? 0 : static_cast<int64_t>(rows.size()) / batches;
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = (rows[i] + static_cast<int64_t>(i) / per_batch * shape.dim(batch)) * width;
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, out_shape));
  CopySlices(c, params, rows, width, out);
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeGather(const KernelInit& init) {
  const DataType dtype = init.attr<DataType>("dtype");
  const int64_t batch_dims = init.attr<int64_t>("batch_dims");
  return Kernel([dtype, batch_dims](KernelContext& c) -> absl::Status {
    return Gather(c, dtype, batch_dims);
  });
}

absl::Status GatherNdFrom(KernelContext& c, DataType dtype) {
  WEIR_ASSIGN_OR_RETURN(const LockedVariables locked, LockedVariables::Lock(c, 1, dtype));
  WEIR_RETURN_IF_ERROR(locked.CheckInitialized(c, 0));
  const Tensor& params = locked[0].value();
  const Tensor& indices = c.input(1);
  WEIR_ASSIGN_OR_RETURN(const Shape out_shape, SlicesShape(indices, params.shape()));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, out_shape));
  int64_t width = 0;
  WEIR_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets,
                        SliceOffsets(indices, params.shape(), &width));
  CopySlices(c, params, offsets, width, out);
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeGatherNd(const KernelInit& init) {
  const DataType dtype = init.attr<DataType>("dtype");
  return Kernel([dtype](KernelContext& c) -> absl::Status { return GatherNdFrom(c, dtype); });
}

absl::StatusOr<Kernel> MakeDestroy(const KernelInit& init) {
  const bool ignore = init.attr<bool>("ignore_lookup_error");
  return Kernel([ignore](KernelContext& c) -> absl::Status { return DestroyResource(c, ignore); });
}

}  // namespace

void AddStateCpu(KernelRegistry* r) {
  for (const char* op : {"VarHandleOp", "VariableV2", "Variable"}) r->Add(op, kCpu, MakeVariable);
  r->Add("ReadVariableOp", kCpu, MakeRead);
  r->Add("VarIsInitializedOp", kCpu, IsInitialized);
  r->Add("IsVariableInitialized", kCpu, IsInitialized);
  r->Add("VariableShape", kCpu, VariableShapeKernel);
  r->Add("DestroyResourceOp", kCpu, MakeDestroy).Writes({0});
  r->Add("AssignVariableOp", kCpu, MakeAssign).Writes({0});
  r->Add("Assign", kCpu, MakeAssign).Writes({0});
  r->Add("AssignAddVariableOp", kCpu, MakeAssignUpdate<RowOp::kAdd, false>).Writes({0});
  r->Add("AssignSubVariableOp", kCpu, MakeAssignUpdate<RowOp::kSub, false>).Writes({0});
  r->Add("AssignAdd", kCpu, MakeAssignUpdate<RowOp::kAdd, true>).Writes({0});
  r->Add("AssignSub", kCpu, MakeAssignUpdate<RowOp::kSub, true>).Writes({0});
  for (const char* op : {"CountUpTo", "ResourceCountUpTo"}) {
    r->Add(op, kCpu, DT_INT32, MakeCountUpTo<int32_t>).Writes({0});
    r->Add(op, kCpu, DT_INT64, MakeCountUpTo<int64_t>).Writes({0});
  }
  r->Add("ResourceGather", kCpu, MakeGather);
  r->Add("ResourceGatherNd", kCpu, MakeGatherNd);
}

}  // namespace weir
