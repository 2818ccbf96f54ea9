#include "weir/core/io/file.h"
#include "weir/core/io/graph_io.h"
#include "weir/proto/graph.pb.h"
#include "weir/tests/core/graph/test_ops.h"
#include "weir/tests/fuzz/targets.h"
#include "weir/tests/io/test_files.h"

// Arbitrary bytes produce either a graph or an error. A graph can be printed, and exporting and
// importing it preserves it; an error leaves the destination graph unchanged.
namespace weir::fuzz {

namespace {

void CheckGraph(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    Require(graph.FindNode(node->name()) == node.get(), "a node is found by its name");
    for (const auto& [name, value] : node->attrs()) {
      if (const Tensor* t = value.get_if<Tensor>()) t->ToString();
      value.ToString();
    }
  }
}

// Exporting and importing the graph preserves it.
void CheckRoundTrip(const Graph& graph) {
  const std::string bytes = SerializeGraph(graph);
  proto::GraphDef exported;
  Require(exported.ParseFromString(bytes), "an exported graph parses");
  Graph again(TestOps());
  Require(ImportGraphDef(again, exported).ok(), "an exported graph is imported");
  Require(SerializeGraph(again) == bytes, "a graph is the same after export and import");
}

}  // namespace

void GraphBytes(absl::string_view bytes) {
  const ImportOptions options = {.prefix = bytes.size() % 2 == 0 ? "" : "p"};
  proto::GraphDef def;
  const bool is_def = def.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  Graph graph(TestOps()), from_bytes(TestOps());
  const bool ok = is_def && ImportGraphDef(graph, def, options).ok();
  Require(ImportGraph(from_bytes, bytes, options).ok() == ok,
          "a graph is imported from its bytes where it is from the message");
  for (const Graph* g : {&graph, &from_bytes}) {
    if (!ok)
      Require(g->num_nodes() == 0 && g->functions() == nullptr,
              "an error leaves the graph unchanged");
  }
  if (!ok) return;
  Require(SerializeGraph(from_bytes) == SerializeGraph(graph), "both are the same graph");
  CheckGraph(graph);
  CheckRoundTrip(graph);
}

void GraphText(absl::string_view bytes) {
  testing::MemoryFileSystem files;
  const ScopedFileSystem scope(&files);
  Require((*files.Create("/g.pbtxt"))->Append(bytes).ok(), "a file is written");
  Graph graph(TestOps());
  if (!ImportGraphFile(graph, "/g.pbtxt").ok()) {
    Require(graph.num_nodes() == 0, "an error leaves the graph unchanged");
    return;
  }
  CheckGraph(graph);
  CheckRoundTrip(graph);
  *files.Contents("/g.pbtxt") = GraphToText(graph);
  Graph again(TestOps());
  Require(ImportGraphFile(again, "/g.pbtxt").ok(), "the text of a graph is imported");
  Require(SerializeGraph(again) == SerializeGraph(graph), "a graph is the same after printing");
}

}  // namespace weir::fuzz
