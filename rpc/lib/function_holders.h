#ifndef WEIR_RPC_LIB_FUNCTION_HOLDERS_H_
#define WEIR_RPC_LIB_FUNCTION_HOLDERS_H_

#include <set>
#include <string>

namespace weir::proto {
class GraphDef;
}

namespace weir::rpc {

// Returns the containers with resources that keep functions of the graph after its session has
// ended: named iterators and BatchFunction.
std::set<std::string> ContainersHoldingFunctions(const proto::GraphDef& graph);

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_FUNCTION_HOLDERS_H_
