#ifndef WEIR_SESSION_MODEL_VARIABLE_IO_H_
#define WEIR_SESSION_MODEL_VARIABLE_IO_H_

#include "weir/core/tensor/api.h"
#include "weir/ops/framework/variable.h"
#include "weir/session/session.h"

// Reads and writes single variables: tf.Variable's `eval` and `load`. C++ has no default session,
// so both take one; a null session is FAILED_PRECONDITION.
namespace WEIR_API weir {

// Returns the value of a tensor, or (`Eval(v, &session)`) of a variable.
absl::StatusOr<Tensor> Eval(const Fetch& tensor, Session* session);

// Assigns this value to a variable, as its initializer would: no node is added, and the variable
// need not be initialized. Returns INVALID_ARGUMENT for another dtype or shape (name, both), and
// for a partitioned or mirrored variable: load its parts() or replicas() one by one.
absl::Status Load(const Variable& variable, const Tensor& value, Session* session);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_VARIABLE_IO_H_
