#ifndef WEIR_OPS_IN_SCOPE_H_
#define WEIR_OPS_IN_SCOPE_H_

#include <string>

#include "weir/core/scope.h"

namespace weir {

// make("<name>/") inside a new name scope: for a node of that name whose arguments are made in its
// own scope, as TensorFlow's functions do with what they convert to tensors.
//   Output product = InScope(g, "MatMul", [&](const std::string& name) {
//     return MatMul(x, w.value(), {.name = name});
//   });
template <class Make>
Output InScope(Graph& graph, absl::string_view name, const Make& make) {
  const NameScope scope(graph, name);
  return make(scope.name());
}

}  // namespace weir

#endif  // WEIR_OPS_IN_SCOPE_H_
