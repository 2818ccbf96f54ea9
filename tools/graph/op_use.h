#ifndef WEIR_TOOLS_GRAPH_OP_USE_H_
#define WEIR_TOOLS_GRAPH_OP_USE_H_

#include <string>
#include <vector>

namespace weir::proto {
class GraphDef;
}

namespace weir::tools {

// An op of a graph: how many nodes use it, and what this program lacks to run them.
struct OpUse {
  std::string op;
  int nodes = 0, in_functions = 0;
  // "unknown op", "no kernel", "no kernel for the types of 2 nodes"; "": nothing.
  std::string missing;
};

// Counts the ops of a graph and of its functions, most used first. Kernels are looked up for types
// only if the graph can be imported.
std::vector<OpUse> CountOps(const proto::GraphDef& def);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_GRAPH_OP_USE_H_
