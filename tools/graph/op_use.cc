#include "weir/tools/graph/op_use.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "weir/core/graph/graph.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/runtime/kernel.h"
#include "weir/proto/graph.pb.h"

namespace weir::tools {

namespace {

// Counts nodes whose types no CPU kernel supports. This requires that the graph can be imported.
std::map<std::string, int> NodesWithoutKernel(const proto::GraphDef& def) {
  std::map<std::string, int> count;
  Graph graph;
  if (!ImportGraphDef(graph, def).ok()) return count;
  for (const auto& node : graph.nodes()) {
    if (BuiltinKernels().Find(*node, kCpu) == nullptr) ++count[node->op_name()];
  }
  return count;
}

std::string MissingSupport(const std::string& op, int without_kernel) {
  if (BuiltinOps().Find(op) == nullptr) return "unknown op";
  if (BuiltinKernels().KernelsOf(op).empty()) return "no kernel";
  if (without_kernel == 0) return "";
  return absl::StrCat("no kernel for the types of ", without_kernel, " nodes");
}

}  // namespace

std::vector<OpUse> CountOps(const proto::GraphDef& def) {
  std::map<std::string, OpUse> ops;
  std::set<std::string> functions;
  for (const proto::NodeDef& node : def.node()) ++ops[node.op()].nodes;
  for (const proto::FunctionDef& function : def.library().function()) {
    functions.insert(function.signature().name());
    for (const proto::NodeDef& node : function.node_def()) ++ops[node.op()].in_functions;
  }
  std::map<std::string, int> without_kernel = NodesWithoutKernel(def);
  std::vector<OpUse> sorted;
  for (auto& [op, use] : ops) {
    use.op = op;
    if (functions.count(op) == 0) use.missing = MissingSupport(op, without_kernel[op]);
    sorted.push_back(std::move(use));
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const OpUse& a, const OpUse& b) {
    return a.nodes + a.in_functions > b.nodes + b.in_functions;
  });
  return sorted;
}

}  // namespace weir::tools
