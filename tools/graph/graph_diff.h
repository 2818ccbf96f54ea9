#ifndef WEIR_TOOLS_GRAPH_GRAPH_DIFF_H_
#define WEIR_TOOLS_GRAPH_GRAPH_DIFF_H_

#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weir::proto {
class GraphDef;
}

namespace weir::tools {

// A node that differs between the graphs.
struct NodeDifference {
  enum Kind { kOnlyInFirst, kOnlyInSecond, kChanged };
  Kind kind = kChanged;
  std::string node;
  std::vector<std::string> details;  // "input 1: a:0 -> b:0"; for a node in one graph only: its op
};

struct GraphDifference {
  std::vector<NodeDifference> nodes;   // in the order of the first graph, then of the second
  std::vector<std::string> functions;  // "only in the first: f"
  bool empty() const { return nodes.empty() && functions.empty(); }
};

// Compares nodes of the same name: op, inputs in order, control inputs as a set, device,
// colocations, and attributes by value (an attribute with its default value equals a missing one;
// the encoding of a tensor does not matter). Attributes named in `ignore`, and "device" if it is in
// `ignore`, are not compared. Functions of the library are compared as a whole.
GraphDifference DiffGraphs(const proto::GraphDef& first, const proto::GraphDef& second,
                           const std::set<std::string>& ignore = {});

}  // namespace weir::tools

#endif  // WEIR_TOOLS_GRAPH_GRAPH_DIFF_H_
