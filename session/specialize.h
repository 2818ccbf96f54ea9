#ifndef WEIR_SESSION_SPECIALIZE_H_
#define WEIR_SESSION_SPECIALIZE_H_

#include <map>
#include <vector>

#include "weir/session/passes.h"

namespace weir {

// The values, by node, of constants that are not folded because they have control inputs, and of
// nodes computed from them and constants alone.
using ControlledConstants = std::map<int, std::vector<Tensor>>;
ControlledConstants FindControlledConstants(PlanGraph& plan, const PassContext& context);

}  // namespace weir

#endif  // WEIR_SESSION_SPECIALIZE_H_
