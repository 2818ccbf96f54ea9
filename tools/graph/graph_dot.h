#ifndef WEIR_TOOLS_GRAPH_GRAPH_DOT_H_
#define WEIR_TOOLS_GRAPH_GRAPH_DOT_H_

#include <functional>
#include <string>

namespace weir::proto {
class GraphDef;
class NodeDef;
}  // namespace weir::proto

namespace weir::tools {

// Returns the graph in Graphviz's DOT language: a box around each name scope, dashed control edges,
// and the output number on edges from outputs other than the first. Includes only nodes that `keep`
// accepts and the edges between them.
std::string GraphToDot(const proto::GraphDef& def,
                       const std::function<bool(const proto::NodeDef&)>& keep);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_GRAPH_GRAPH_DOT_H_
