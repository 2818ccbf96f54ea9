#ifndef WEIR_SESSION_VARIABLE_IO_H_
#define WEIR_SESSION_VARIABLE_IO_H_

#include "weir/ops/variable.h"
#include "weir/session/session.h"

// Values in and out of variables by hand: tf.Variable's `eval` and `load`. There is no default
// session in C++, so both are given one; a null one is FAILED_PRECONDITION.
namespace weir {

// The value of a tensor, or (`Eval(v, &session)`) of a variable.
absl::StatusOr<Tensor> Eval(const Fetch& tensor, Session* session);

// Gives a variable this value, as its initializer would: no node is added, and the variable need
// not have a value before. INVALID_ARGUMENT for another dtype or shape (name, both), and for a
// partitioned or mirrored variable, whose parts() or replicas() are loaded one by one.
absl::Status Load(const Variable& variable, const Tensor& value, Session* session);

}  // namespace weir

#endif  // WEIR_SESSION_VARIABLE_IO_H_
