#ifndef WEIR_SESSION_MODEL_VARIABLE_VALUES_H_
#define WEIR_SESSION_MODEL_VARIABLE_VALUES_H_

#include <vector>

#include "weir/session/session.h"

namespace weir {

// Returns the present values of variables, all read in one step: those of the nodes of the
// session's graph that create their handles or references (IsVariable). Adds no node to the graph.
//   FAILED_PRECONDITION  a variable has no value (name)
//   UNIMPLEMENTED        no node reads a variable whose value is in another process or on a device
absl::StatusOr<Tensors> ReadVariables(Session& session, const std::vector<Node*>& variables);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_VARIABLE_VALUES_H_
