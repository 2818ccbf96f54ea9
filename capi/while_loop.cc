#include <algorithm>

#include "weir/capi/objects.h"
#include "weir/core/io/function_library.h"
#include "weir/ops/framework/function.h"

// Loops. The condition and the body, which the caller builds as graphs, become functions, and the
// loop is one While node. TensorFlow adds the nodes of both to the graph instead.

namespace weir::capi {

namespace {

constexpr TF_Output kUnset{nullptr, -1};

TF_Graph* NewPart(TF_Graph* parent, const std::vector<TF_Output>& inputs, const Outputs& from,
                  TF_Output* placeholders) {
  TF_Graph* const part = TF_NewGraph();
  part->parent = parent;
  part->parent_inputs = inputs;
  const MutexLock lock(part->mutex);
  for (size_t i = 0; i < from.size(); ++i) {
    Node* const node = NodeBuilder(*part->graph, "Placeholder")
                           .Name(absl::StrCat("input_", i, "/"))
                           .Attr("dtype", from[i].dtype())
                           .Attr("shape", from[i].shape())
                           .Build();
    placeholders[i] = {OperationOf(node), 0};
  }
  return part;
}

// Defines one of the two functions.
absl::StatusOr<FunctionRef> Define(Graph& graph, const std::string& name, TF_Graph* part,
                                   const TF_Output* inputs, int num_inputs,
                                   const TF_Output* outputs, int num_outputs) {
  const MutexLock lock(part->mutex);
  WEIR_ASSIGN_OR_RETURN(const Outputs args, OutputsOf(inputs, num_inputs, *part->graph));
  WEIR_ASSIGN_OR_RETURN(const Outputs results, OutputsOf(outputs, num_outputs, *part->graph));
  WEIR_RETURN_IF_ERROR(DefineFunction(graph, name, *part->graph, args, results));
  return FunctionRef{name, nullptr};
}

absl::Status CheckParams(const TF_WhileParams& params) {
  if (params.cond_graph == nullptr || params.body_graph == nullptr ||
      params.cond_graph->parent == nullptr)
    return InvalidArgument("TF_WhileParams is not one of TF_NewWhile");
  if (params.name == nullptr) return InvalidArgument("TF_WhileParams `name` field is null");
  if (params.cond_output.oper == nullptr)
    return InvalidArgument("TF_WhileParams `cond_output` field isn't set");
  for (int i = 0; i < params.ninputs; ++i) {
    if (params.body_outputs[i].oper == nullptr)
      return InvalidArgument("TF_WhileParams `body_outputs[", i, "]` field isn't set");
  }
  return absl::OkStatus();
}

absl::Status CheckTypes(const TF_WhileParams& params) {
  const TF_DataType condition = TF_OperationOutputType(params.cond_output);
  if (condition != TF_BOOL) {
    return InvalidArgument("BuildWhileLoop: 'cond' argument must return a boolean output, got ",
                           DataTypeName(static_cast<DataType>(condition)));
  }
  for (int i = 0; i < params.ninputs; ++i) {
    const TF_DataType in = TF_OperationOutputType(params.body_inputs[i]);
    const TF_DataType out = TF_OperationOutputType(params.body_outputs[i]);
    if (in != out) {
      return InvalidArgument("'", params.name, "': input ", i, " is ",
                             DataTypeName(static_cast<DataType>(in)), ", but the body returns ",
                             DataTypeName(static_cast<DataType>(out)));
    }
  }
  return absl::OkStatus();
}

absl::Status AddLoop(const TF_WhileParams& params, Graph& graph, TF_Output* outputs) {
  const TF_Graph& part = *params.cond_graph;
  WEIR_ASSIGN_OR_RETURN(const Outputs inputs,
                        OutputsOf(part.parent_inputs.data(), params.ninputs, graph));
  const std::string name = graph.UniqueName(params.name, false);
  WEIR_ASSIGN_OR_RETURN(const FunctionRef condition,
                        Define(graph, name + "_cond", params.cond_graph, params.cond_inputs,
                               params.ninputs, &params.cond_output, 1));
  WEIR_ASSIGN_OR_RETURN(const FunctionRef body,
                        Define(graph, name + "_body", params.body_graph, params.body_inputs,
                               params.ninputs, params.body_outputs, params.ninputs));
  WEIR_RETURN_IF_ERROR(CheckTypes(params));
  const Outputs results = FunctionalWhile(inputs, condition, body, name);
  WEIR_RETURN_IF_ERROR(graph.TakeStatus());
  for (int i = 0; i < params.ninputs; ++i) outputs[i] = HandleOf(results[i]);
  return absl::OkStatus();
}

}  // namespace

}  // namespace weir::capi

using weir::capi::HaveAll;
using weir::capi::SetStatus;

TF_WhileParams TF_NewWhile(TF_Graph* g, TF_Output* inputs, int ninputs, TF_Status* status) {
  constexpr TF_Output kUnset = weir::capi::kUnset;
  if (!HaveAll("TF_NewWhile", {g}, status))
    return {0, nullptr, nullptr, kUnset, nullptr, nullptr, nullptr, nullptr};
  absl::StatusOr<weir::Outputs> from;
  {
    const weir::MutexLock lock(g->mutex);
    from = weir::capi::OutputsOf(inputs, ninputs, *g->graph);
    if (from.ok() && from->empty())
      from = weir::InvalidArgument("TF_NewWhile() must be passed at least one input");
  }
  SetStatus(status, from.status());
  if (!from.ok()) return {0, nullptr, nullptr, kUnset, nullptr, nullptr, nullptr, nullptr};
  const std::vector<TF_Output> parent_inputs(inputs, inputs + ninputs);
  auto* const cond_inputs = new TF_Output[ninputs];
  auto* const body_inputs = new TF_Output[ninputs];
  auto* const body_outputs = new TF_Output[ninputs];
  std::fill_n(body_outputs, ninputs, kUnset);
  TF_Graph* const cond = weir::capi::NewPart(g, parent_inputs, *from, cond_inputs);
  TF_Graph* const body = weir::capi::NewPart(g, parent_inputs, *from, body_inputs);
  return {ninputs, cond, cond_inputs, kUnset, body, body_inputs, body_outputs, nullptr};
}

void TF_FinishWhile(const TF_WhileParams* params, TF_Status* status, TF_Output* outputs) {
  if (params != nullptr && outputs != nullptr)
    std::fill_n(outputs, std::max(0, params->ninputs), weir::capi::kUnset);
  if (!HaveAll("TF_FinishWhile", {params, outputs}, status)) return;
  absl::Status finished = weir::capi::CheckParams(*params);
  if (finished.ok()) {
    finished = params->cond_graph->parent->Change(
        [&](weir::Graph& graph) { return weir::capi::AddLoop(*params, graph, outputs); });
  }
  SetStatus(status, finished);
  TF_AbortWhile(params);
}

void TF_AbortWhile(const TF_WhileParams* params) {
  if (params == nullptr) return;
  TF_DeleteGraph(params->cond_graph);
  TF_DeleteGraph(params->body_graph);
  delete[] params->cond_inputs;
  delete[] params->body_inputs;
  delete[] params->body_outputs;
}
