#include "weir/session/model/variable_io.h"

namespace weir {

absl::StatusOr<Tensor> Eval(const Fetch& tensor, Session* session) {
  if (session == nullptr)
    return FailedPrecondition("Cannot evaluate ", tensor.valid() ? tensor.name() : "a tensor",
                              ": the session is null");
  WEIR_ASSIGN_OR_RETURN(Tensors out, session->Run({tensor}));
  return std::move(out[0]);
}

absl::Status Load(const Variable& variable, const Tensor& value, Session* session) {
  if (variable.handle().expired() || (!variable.valid() && variable.is_partitioned()))
    return FailedPrecondition("Cannot load a value into ", variable.name(),
                              ", which belongs to a destroyed graph");
  if (!variable.valid()) return InvalidArgument("Cannot load a value into an invalid variable");
  if (session == nullptr)
    return FailedPrecondition("Cannot load a value into ", variable.name(),
                              ": the session is null");
  if (variable.is_partitioned() || !variable.replicas().empty())
    return InvalidArgument("Cannot load a value into ", variable.name(),
                           ", which is partitioned or mirrored: load its parts() or replicas()");
  const Operation initializer = variable.initializer();
  if (!initializer.valid() || initializer.node->num_inputs() < 2)
    return FailedPrecondition("Cannot load a value into ", variable.name(),
                              ": it has no initializer to feed");
  if (value.dtype() != variable.dtype() || !variable.shape().IsCompatibleWith(value.shape()))
    return InvalidArgument("Cannot load a value of type ", DataTypeName(value.dtype()),
                           " and shape ", value.shape().ToString(), " into ", variable.name(),
                           " of type ", DataTypeName(variable.dtype()), " and shape ",
                           variable.shape().ToString());
  // The initializer assigns the fed value instead of its initial value.
  return session->Run({{initializer.node->input(1), value}}, Outputs{}, {initializer}).status();
}

}  // namespace weir
