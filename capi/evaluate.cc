#include <set>

#include "weir/capi/session.h"
#include "weir/capi/updated_inputs.h"

// Changes and values of a graph without a session of the caller.

namespace weir::capi {

namespace {

// Returns whether nothing but constants and functions of them determines a node.
bool IsConstant(Node* node) {
  std::set<const Node*> seen;
  std::vector<const Node*> queue = {node};
  while (!queue.empty()) {
    const Node* const next = queue.back();
    queue.pop_back();
    if (!seen.insert(next).second) continue;
    if (next->op().stateful() || next->op().traits().placeholder) return false;
    for (const Output& input : next->inputs()) queue.push_back(input.node);
    queue.insert(queue.end(), next->control_inputs().begin(), next->control_inputs().end());
  }
  return true;
}

absl::StatusOr<TF_Tensor*> Evaluate(const Graph& graph, const TF_Output& output) {
  WEIR_ASSIGN_OR_RETURN(const Output of, OutputOf(output, graph));
  if (!IsConstant(of.node)) return nullptr;
  SessionOptions options = DefaultOptions();
  options.num_threads = 1;
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(graph, options));
  WEIR_ASSIGN_OR_RETURN(const Tensors values, session.Run({of}));
  return NewTensor(values[0]);
}

}  // namespace

}  // namespace weir::capi

using weir::capi::HaveAll;
using weir::capi::SetStatus;

unsigned char TF_TryEvaluateConstant(TF_Graph* graph, TF_Output output, TF_Tensor** result,
                                     TF_Status* status) {
  if (result != nullptr) *result = nullptr;
  if (!HaveAll("TF_TryEvaluateConstant", {graph, result}, status)) return 0;
  const weir::MutexLock lock(graph->mutex);
  const absl::StatusOr<TF_Tensor*> value = weir::capi::Evaluate(*graph->graph, output);
  SetStatus(status, value.status());
  if (!value.ok()) return 0;
  *result = *value;
  return *value != nullptr ? 1 : 0;
}

void TF_UpdateEdge(TF_Graph* graph, TF_Output new_src, TF_Input dst, TF_Status* status) {
  if (!HaveAll("TF_UpdateEdge", {graph, new_src.oper, dst.oper}, status)) return;
  SetStatus(status, graph->Change([&](weir::Graph& changed) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const weir::Output source, weir::capi::OutputOf(new_src, changed));
    weir::Node* const user = weir::capi::NodeOf(dst.oper);
    if (&user->graph() != &changed)
      return weir::InvalidArgument(user->Label(), " belongs to another graph");
    WEIR_RETURN_IF_ERROR(changed.SetInput(user, dst.index, source));
    changed.Extension<weir::capi::UpdatedInputs>().Add(user, dst.index);
    return absl::OkStatus();
  }));
}
