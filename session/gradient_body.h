#ifndef WEIR_SESSION_GRADIENT_BODY_H_
#define WEIR_SESSION_GRADIENT_BODY_H_

#include "weir/core/function_library.h"

namespace weir {

// Turns the body of f into the body of its gradient: arguments are those of f, then a gradient for
// each result of f; results are the gradients of the arguments of f, zeros where there is none.
// `types`: of the results, where they are not those of the arguments (a handle's gradient is of its
// variable's type); empty for the arguments' own.
absl::Status MakeGradientBody(const DataTypes& types, FunctionBody* body);

}  // namespace weir

#endif  // WEIR_SESSION_GRADIENT_BODY_H_
