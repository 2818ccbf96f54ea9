#include <cstdlib>
#include <cstring>

#include "weir/capi/objects.h"
#include "weir/capi/plugins.h"
#include "weir/core/io/function_library.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/function.pb.h"
#include "weir/proto/graph.pb.h"
#include "weir/proto/op_def.pb.h"

namespace weir::capi {

absl::StatusOr<Output> OutputOf(const TF_Output& output, const Graph& graph) {
  Node* const node = NodeOf(output.oper);
  if (node == nullptr) return InvalidArgument("Node is null");
  if (&node->graph() != &graph) return InvalidArgument(node->Label(), " belongs to another graph");
  if (output.index < 0 || output.index >= node->num_outputs()) {
    return OutOfRange("Node '", node->name(), "' (type: '", node->op_name(),
                      "', num of outputs: ", node->num_outputs(), ") does not have output ",
                      output.index);
  }
  return Output(node, output.index);
}

absl::StatusOr<Outputs> OutputsOf(const TF_Output* outputs, int count, const Graph& graph) {
  WEIR_ASSIGN_OR_RETURN(const auto array, ArrayOf(outputs, count, "outputs"));
  Outputs converted;
  for (const TF_Output& output : array) {
    WEIR_ASSIGN_OR_RETURN(converted.emplace_back(), OutputOf(output, graph));
  }
  return converted;
}

absl::StatusOr<std::vector<Operation>> TargetsOf(const TF_Operation* const* targets, int count,
                                                 const Graph& graph) {
  WEIR_RETURN_IF_ERROR(ArrayOf(targets, count, "targets").status());
  std::vector<Operation> converted;
  for (int i = 0; i < count; ++i) {
    Node* const node = const_cast<Node*>(NodeOf(targets[i]));
    if (node == nullptr || &node->graph() != &graph)
      return InvalidArgument("target ", i, node == nullptr ? " is null" : " is of another graph");
    converted.emplace_back(node);
  }
  return converted;
}

std::unique_ptr<Graph> NewGraph() { return std::make_unique<Graph>(Plugins::Instance().ops()); }

TF_Output HandleOf(const Output& output) {
  return output.valid() ? TF_Output{OperationOf(output.node), output.index}
                        : TF_Output{nullptr, -1};
}

}  // namespace weir::capi

using weir::Graph;
using weir::MutexLock;
using weir::Output;
using weir::capi::HaveAll;
using weir::capi::NodeOf;
using weir::capi::OperationOf;
using weir::capi::SetBuffer;
using weir::capi::SetStatus;

TF_Graph* TF_NewGraph() { return new TF_Graph; }

void TF_DeleteGraph(TF_Graph* graph) {
  if (graph == nullptr) return;
  {
    const MutexLock lock(graph->mutex);
    graph->is_deleted = true;
    if (!graph->sessions.empty()) return;
  }
  delete graph;
}

void TF_GraphSetTensorShape(TF_Graph* graph, TF_Output output, const int64_t* dims, int num_dims,
                            TF_Status* status) {
  if (!HaveAll("TF_GraphSetTensorShape", {graph}, status)) return;
  SetStatus(status, graph->Change([&](Graph& changed) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const Output of, weir::capi::OutputOf(output, changed));
    WEIR_ASSIGN_OR_RETURN(const weir::Shape shape, weir::capi::ShapeOf(dims, num_dims));
    return changed.RefineShape(of, shape);
  }));
}

int TF_GraphGetTensorNumDims(TF_Graph* graph, TF_Output output, TF_Status* status) {
  if (!HaveAll("TF_GraphGetTensorNumDims", {graph}, status)) return -1;
  const MutexLock lock(graph->mutex);
  const auto of = weir::capi::OutputOf(output, *graph->graph);
  SetStatus(status, of.status());
  return of.ok() ? of->shape().rank() : -1;
}

void TF_GraphGetTensorShape(TF_Graph* graph, TF_Output output, int64_t* dims, int num_dims,
                            TF_Status* status) {
  if (!HaveAll("TF_GraphGetTensorShape", {graph}, status)) return;
  const MutexLock lock(graph->mutex);
  const auto get = [&](const Graph& read) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const Output of, weir::capi::OutputOf(output, read));
    const weir::Shape& shape = of.shape();
    if (shape.rank() < 0) return absl::OkStatus();
    if (shape.rank() != num_dims || (dims == nullptr && num_dims > 0)) {
      return weir::InvalidArgument("Expected rank is ", num_dims, " but actual rank is ",
                                   shape.rank());
    }
    std::copy(shape.dims().begin(), shape.dims().end(), dims);
    return absl::OkStatus();
  };
  SetStatus(status, get(*graph->graph));
}

TF_Operation* TF_GraphOperationByName(TF_Graph* graph, const char* oper_name) {
  if (!HaveAll("TF_GraphOperationByName", {graph, oper_name})) return nullptr;
  const MutexLock lock(graph->mutex);
  return OperationOf(graph->graph->FindNode(oper_name));
}

TF_Operation* TF_GraphNextOperation(TF_Graph* graph, size_t* pos) {
  if (!HaveAll("TF_GraphNextOperation", {graph, pos})) return nullptr;
  const MutexLock lock(graph->mutex);
  const auto nodes = graph->graph->nodes();
  return *pos < nodes.size() ? OperationOf(nodes[(*pos)++].get()) : nullptr;
}

void TF_GraphToGraphDef(TF_Graph* graph, TF_Buffer* output_graph_def, TF_Status* status) {
  if (!HaveAll("TF_GraphToGraphDef", {graph, output_graph_def}, status)) return;
  if (output_graph_def->data != nullptr)
    return SetStatus(status,
                     weir::InvalidArgument("Passing non-empty output_graph_def is invalid."));
  const MutexLock lock(graph->mutex);
  SetBuffer(weir::SerializeGraph(*graph->graph), output_graph_def);
  SetStatus(status, absl::OkStatus());
}

void TF_GraphVersions(TF_Graph* graph, TF_Buffer* output_version_def, TF_Status* status) {
  if (!HaveAll("TF_GraphVersions", {graph, output_version_def}, status)) return;
  weir::proto::VersionDef versions;
  {
    const MutexLock lock(graph->mutex);
    const weir::GraphVersions& own = graph->graph->versions();
    versions.set_producer(own.producer);
    versions.set_min_consumer(own.min_consumer);
    versions.mutable_bad_consumers()->Assign(own.bad_consumers.begin(), own.bad_consumers.end());
  }
  SetBuffer(versions.SerializeAsString(), output_version_def);
  SetStatus(status, absl::OkStatus());
}

void TF_GraphGetOpDef(TF_Graph* graph, const char* op_name, TF_Buffer* output_op_def,
                      TF_Status* status) {
  if (!HaveAll("TF_GraphGetOpDef", {graph, op_name, output_op_def}, status)) return;
  const MutexLock lock(graph->mutex);
  const auto& functions = graph->graph->functions();
  const auto* const function = functions == nullptr ? nullptr : functions->FindDef(op_name);
  if (function != nullptr) {
    SetBuffer(weir::DeterministicBytes(function->signature()), output_op_def);
    return SetStatus(status, absl::OkStatus());
  }
  const auto op = graph->graph->ops().Lookup(op_name);
  if (op.ok()) SetBuffer(weir::OpToBytes(**op), output_op_def);
  SetStatus(status, op.status());
}

const char* TF_GraphDebugString(TF_Graph* graph, size_t* len) {
  if (!HaveAll("TF_GraphDebugString", {graph})) return nullptr;
  const MutexLock lock(graph->mutex);
  const std::string text = weir::GraphToText(*graph->graph);
  if (len != nullptr) *len = text.size();
  return strdup(text.c_str());
}

TF_Buffer* TF_GetAllOpList() {
  weir::proto::OpList list;
  for (const weir::OpSpec* op : weir::capi::Plugins::Instance().ops().All())
    weir::OpToProto(*op, list.add_op());
  TF_Buffer* const buffer = TF_NewBuffer();
  SetBuffer(list.SerializeAsString(), buffer);
  return buffer;
}

// The last release whose header and behavior the API follows.
const char* TF_Version() { return "2.21.0"; }
