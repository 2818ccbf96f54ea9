#include "weir/kernels/lib/variable_access.h"

#include <algorithm>

namespace weir {

absl::StatusOr<LockedVariables> LockedVariables::Lock(const KernelContext& c, int count,
                                                      DataType dtype) {
  LockedVariables out;
  for (int i = 0; i < count; ++i) {
    VariableState* state = c.variable_or_null(i);
    if (state == nullptr) return c.variable(i).status();
    if (state->dtype() != dtype) {
      return InvalidArgument("Trying to access variable ", state->name(),
                             " with wrong dtype. Expected ", DataTypeName(state->dtype()), " got ",
                             DataTypeName(dtype));
    }
    out.states_.push_back(state);
  }
  absl::InlinedVector<VariableState*, 4> order = out.states_;
  if (order.size() > 1) {
    std::sort(order.begin(), order.end());
    order.erase(std::unique(order.begin(), order.end()), order.end());
  }
  for (VariableState* state : order) out.locks_.emplace_back(state->mutex());
  for (int i = 0; i < count; ++i) WEIR_RETURN_IF_ERROR(CheckReachable(c, i, out[i]));
  return out;
}

absl::Status LockedVariables::CheckInitialized(const KernelContext& c, int i) const {
  return (*this)[i].initialized() ? absl::OkStatus() : UninitializedVariable(c, i, (*this)[i]);
}

absl::StatusOr<Tensor*> LockedVariables::Writable(const KernelContext& c, int i) const {
  WEIR_RETURN_IF_ERROR(CheckInitialized(c, i));
  return (*this)[i].Writable(c.device());
}

absl::Status CheckAssignable(const VariableState& v, const Shape& shape, bool is_ref,
                             bool validate_shape) {
  if (!is_ref) {
    const bool same_as_now = !validate_shape || !v.initialized() || v.value().shape() == shape;
    if (v.shape().IsCompatibleWith(shape) && same_as_now) return absl::OkStatus();
    const Shape& expected = v.shape().IsCompatibleWith(shape) ? v.value().shape() : v.shape();
    return InvalidArgument("Trying to assign to variable with tensor with wrong shape. Expected ",
                           expected.ToString(), " got ", shape.ToString(), " (variable ", v.name(),
                           ")");
  }
  if (!validate_shape) return absl::OkStatus();
  const Shape& now = v.initialized() ? v.value().shape() : v.shape();
  if (now.IsCompatibleWith(shape)) return absl::OkStatus();
  return InvalidArgument(
      "Assign requires shapes of both tensors to match. lhs shape= ", now.ToString(),
      " rhs shape= ", shape.ToString(), " (variable ", v.name(), ")");
}

absl::Status CheckReachable(const KernelContext& c, int i, const VariableState& variable) {
  const Tensor& value = variable.value();
  if (!IsPlain(value.dtype()) || !value.buffer()) return absl::OkStatus();
  const bool reachable = c.device().is_host()
                             ? value.host_accessible()
                             : value.buffer()->allocator() == &c.device().allocator();
  if (reachable) return absl::OkStatus();
  return InvalidArgument(
      "Trying to access ", variable.Describe(), ", which is on ",
      c.input(i).data<ResourceHandle>()->device, ", from ", c.device().text(),
      ": a variable belongs to one device; feed its handle to nodes on that device");
}

absl::Status UninitializedVariable(const KernelContext& c, int i, const VariableState& variable) {
  if (c.node().input_type(i) != DT_RESOURCE) return variable.Uninitialized();
  const ResourceHandle& handle = *c.input(i).data<ResourceHandle>();
  const std::string container =
      handle.container.empty() ? ResourceMap::kDefaultContainer : handle.container;
  return FailedPrecondition(
      "Error while reading resource variable ", variable.name(), " from Container: ", container,
      ". This could mean that the variable was uninitialized. Not found: Resource ", container, "/",
      variable.name(), " does not exist. Run its initializer first.");
}

}  // namespace weir
