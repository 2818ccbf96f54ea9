#ifndef WEIR_TOOLS_GRAPH_DIFF_H_
#define WEIR_TOOLS_GRAPH_DIFF_H_

#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weir::proto {
class GraphDef;
}

namespace weir::tools {

// One node that is not the same in both graphs.
struct NodeDifference {
  enum Kind { kOnlyInFirst, kOnlyInSecond, kChanged };
  Kind kind = kChanged;
  std::string node;
  std::vector<std::string> details;  // "input 1: a:0 -> b:0"; of a node in one graph only: its op
};

struct GraphDifference {
  std::vector<NodeDifference> nodes;   // in the order of the first graph, then of the second
  std::vector<std::string> functions;  // "only in the first: f"
  bool empty() const { return nodes.empty() && functions.empty(); }
};

// Compares node by node, by name: op, inputs in order, control inputs as a set, device,
// colocations, attributes by value (one with its default is equal to one that is absent; a tensor
// is equal however it is encoded). Names of attributes in `ignore`, and "device", are not compared.
// Functions of the library are compared as wholes.
GraphDifference DiffGraphs(const proto::GraphDef& first, const proto::GraphDef& second,
                           const std::set<std::string>& ignore = {});

}  // namespace weir::tools

#endif  // WEIR_TOOLS_GRAPH_DIFF_H_
