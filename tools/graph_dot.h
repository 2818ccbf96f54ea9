#ifndef WEIR_TOOLS_GRAPH_DOT_H_
#define WEIR_TOOLS_GRAPH_DOT_H_

#include <functional>
#include <string>

namespace weir::proto {
class GraphDef;
class NodeDef;
}  // namespace weir::proto

namespace weir::tools {

// The graph in Graphviz's language: a box around each name scope, control edges dashed, edges that
// carry another output than the first labeled with its number. Only nodes that `keep` accepts, and
// the edges between them.
std::string GraphToDot(const proto::GraphDef& def,
                       const std::function<bool(const proto::NodeDef&)>& keep);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_GRAPH_DOT_H_
