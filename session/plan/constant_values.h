#ifndef WEIR_SESSION_PLAN_CONSTANT_VALUES_H_
#define WEIR_SESSION_PLAN_CONSTANT_VALUES_H_

#include <optional>

#include "weir/core/tensor/tensor.h"

namespace weir {

// Returns the number that every element of the tensor is, bit for bit; 0 or 1 for a bool. nullopt
// if elements differ, if there are none or too many to be looked at in a pass, and for other types
// than real numbers and bool.
std::optional<double> ValueOfAll(const Tensor& t);

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_CONSTANT_VALUES_H_
