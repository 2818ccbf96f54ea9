#ifndef WEIR_RPC_CLUSTER_LOWER_FUNCTIONAL_OPS_H_
#define WEIR_RPC_CLUSTER_LOWER_FUNCTIONAL_OPS_H_

#include <memory>

#include "weir/core/io/function_library.h"

namespace weir::proto {
class GraphDef;
}

namespace weir::rpc {

// Replaces each While and If (StatelessWhile, StatelessIf) by the ops of v1 control flow and by the
// nodes of its functions, so that these can be placed on several tasks. A node of a function
// requests the device that it names, and for the parts that it does not name that of the loop or
// branch, as on TensorFlow's masters. A node of the same name returns the same outputs, except for
// those that are resources: nodes of `def` that use one use the loop's input instead.
//
// `library` (may be null) has the functions of the graph, besides those of `def`. What cannot be
// lowered stays as it is, and then runs on one task with its functions:
//
//   * nodes whose attribute `_lower_using_switch_merge` is false;
//   * functions that are missing, malformed or recursive, that contain v1 control flow, or whose
//     nodes' names identify state;
//   * loops that change a resource or carry nothing else, branches that return one;
//   * nodes beyond the depth and size limits: 16 levels, 50,000 nodes of functions.
void LowerFunctionalOps(const std::shared_ptr<const FunctionLibrary>& library,
                        proto::GraphDef* def);

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_LOWER_FUNCTIONAL_OPS_H_
