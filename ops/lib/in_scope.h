#ifndef WEIR_OPS_LIB_IN_SCOPE_H_
#define WEIR_OPS_LIB_IN_SCOPE_H_

#include <string>

#include "weir/core/graph/scope.h"

namespace weir {

// Returns make("<name>/") called inside a new name scope. Use it for a node of that name whose
// arguments are created in the node's own scope, as TensorFlow's functions do when they convert
// arguments to tensors.
//   Output product = InScope(g, "MatMul", [&](const std::string& name) {
//     return MatMul(x, w.value(), {.name = name});
//   });
template <class Make>
Output InScope(Graph& graph, absl::string_view name, const Make& make) {
  const NameScope scope(graph, name);
  return make(scope.name());
}

}  // namespace weir

#endif  // WEIR_OPS_LIB_IN_SCOPE_H_
