#ifndef WEIR_RPC_CLUSTER_REACHABLE_FUNCTIONS_H_
#define WEIR_RPC_CLUSTER_REACHABLE_FUNCTIONS_H_

#include "weir/core/io/function_library.h"

namespace weir::proto {
class GraphDef;
}

namespace weir::rpc {

// Adds to a graph the functions of the library that its nodes call or name, those that these call,
// and their gradients.
void AddReachableFunctions(const FunctionLibrary& library, proto::GraphDef* def);

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_REACHABLE_FUNCTIONS_H_
