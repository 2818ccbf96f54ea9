#ifndef WEIR_SESSION_RUNTIME_GRADIENT_BODY_H_
#define WEIR_SESSION_RUNTIME_GRADIENT_BODY_H_

#include "weir/core/io/function_library.h"

namespace weir {

// Turns the body of f into the body of its gradient. The arguments are those of f, then a gradient
// for each result of f; the results are the gradients of the arguments of f, zeros where there is
// none. `args` and `results`: the types of both where they differ from those of f (a gradient with
// respect to a resource handle has the type of its variable); empty if they do not. A result of
// type DT_RESOURCE is the argument itself: a handle without a gradient.
absl::Status MakeGradientBody(const DataTypes& args, const DataTypes& results, FunctionBody* body);

}  // namespace weir

#endif  // WEIR_SESSION_RUNTIME_GRADIENT_BODY_H_
