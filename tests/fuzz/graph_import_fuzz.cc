#include <cstdint>
#include <cstdlib>

#include "weir/core/graph_io.h"
#include "weir/proto/graph.pb.h"
#include "weir/tests/core/test_ops.h"

// Any bytes either make a graph or an error. A graph prints and is the same after export and
// import; an error leaves the graph it was imported into as it was.
namespace weir {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void ImportBytes(const uint8_t* data, size_t size) {
  proto::GraphDef def;
  if (!def.ParseFromArray(data, static_cast<int>(size))) return;
  Graph graph(TestOps());
  if (!ImportGraphDef(graph, def, {.prefix = size % 2 == 0 ? "" : "p"}).ok()) {
    Require(graph.num_nodes() == 0);
    return;
  }
  for (const auto& node : graph.nodes()) {
    Require(graph.FindNode(node->name()) == node.get());
    for (const auto& [name, value] : node->attrs()) {
      if (const Tensor* t = value.get_if<Tensor>()) t->ToString();
      value.ToString();
    }
  }
  const std::string bytes = SerializeGraph(graph);
  proto::GraphDef exported;
  Require(exported.ParseFromString(bytes));
  Graph again(TestOps());
  Require(ImportGraphDef(again, exported).ok());
  Require(SerializeGraph(again) == bytes);
}

}  // namespace
}  // namespace weir

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weir::ImportBytes(data, size);
  return 0;
}
