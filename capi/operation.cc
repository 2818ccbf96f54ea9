#include "weir/capi/objects.h"
#include "weir/capi/updated_inputs.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/node_def.pb.h"

// What operations are. The nodes of a graph are immutable once they are built, except for edges
// that an import closes, and live as long as the graph.

using weir::Node;
using weir::capi::HaveAll;
using weir::capi::LogMisuse;
using weir::capi::NodeOf;
using weir::capi::OperationOf;
using weir::capi::SetStatus;

namespace {

// Returns whether an index is in range; logs it if not.
bool IsIndex(absl::string_view function, const char* what, int index, int count) {
  if (index >= 0 && index < count) return true;
  LogMisuse(function,
            absl::StrCat("the operation has ", count, " ", what, ", not ", index, " + 1"));
  return false;
}

// Calls `visit` with each input of the graph that takes an output of `node`, and returns their
// number.
template <class Visit>
int ForEachConsumer(const Node& node, int index, Visit visit) {
  int count = 0;
  for (const auto& user : node.graph().nodes()) {
    for (int i = 0; i < user->num_inputs(); ++i) {
      if (user->input(i).node == &node && user->input(i).index == index)
        visit(count++, TF_Input{OperationOf(user.get()), i});
    }
  }
  return count;
}

template <class Visit>
int ForEachControlOutput(const Node& node, Visit visit) {
  int count = 0;
  for (const auto& user : node.graph().nodes()) {
    for (const Node* control : user->control_inputs()) {
      if (control == &node) visit(count++, OperationOf(user.get()));
    }
  }
  return count;
}

// Returns the length of an argument's range, which is that of all arguments before if it is absent.
int ListLength(absl::Span<const weir::ArgSpec> args, const char* arg_name, const char* kind,
               std::pair<int, int> range, TF_Status* status) {
  for (const weir::ArgSpec& arg : args) {
    if (arg.name != arg_name) continue;
    SetStatus(status, absl::OkStatus());
    return range.second - range.first;
  }
  SetStatus(status, weir::InvalidArgument(kind, " arg '", arg_name, "' not found"));
  return -1;
}

}  // namespace

const char* TF_OperationName(TF_Operation* oper) {
  return HaveAll("TF_OperationName", {oper}) ? NodeOf(oper)->name().c_str() : nullptr;
}

const char* TF_OperationOpType(TF_Operation* oper) {
  return HaveAll("TF_OperationOpType", {oper}) ? NodeOf(oper)->op_name().c_str() : nullptr;
}

const char* TF_OperationDevice(TF_Operation* oper) {
  return HaveAll("TF_OperationDevice", {oper}) ? NodeOf(oper)->device().c_str() : nullptr;
}

int TF_OperationNumOutputs(TF_Operation* oper) {
  return HaveAll("TF_OperationNumOutputs", {oper}) ? NodeOf(oper)->num_outputs() : -1;
}

TF_DataType TF_OperationOutputType(TF_Output oper_out) {
  if (!HaveAll("TF_OperationOutputType", {oper_out.oper})) return TF_DataType{};
  const Node& node = *NodeOf(oper_out.oper);
  if (!IsIndex("TF_OperationOutputType", "outputs", oper_out.index, node.num_outputs()))
    return TF_DataType{};
  return static_cast<TF_DataType>(node.output_type(oper_out.index));
}

int TF_OperationNumInputs(TF_Operation* oper) {
  return HaveAll("TF_OperationNumInputs", {oper}) ? NodeOf(oper)->num_inputs() : -1;
}

TF_DataType TF_OperationInputType(TF_Input oper_in) {
  if (!HaveAll("TF_OperationInputType", {oper_in.oper})) return TF_DataType{};
  const Node& node = *NodeOf(oper_in.oper);
  if (!IsIndex("TF_OperationInputType", "inputs", oper_in.index, node.num_inputs()))
    return TF_DataType{};
  return static_cast<TF_DataType>(node.input_type(oper_in.index));
}

int TF_OperationOutputListLength(TF_Operation* oper, const char* arg_name, TF_Status* status) {
  if (!HaveAll("TF_OperationOutputListLength", {oper, arg_name}, status)) return -1;
  const Node& node = *NodeOf(oper);
  return ListLength(node.op().outputs(), arg_name, "Output", node.OutputRange(arg_name), status);
}

int TF_OperationInputListLength(TF_Operation* oper, const char* arg_name, TF_Status* status) {
  if (!HaveAll("TF_OperationInputListLength", {oper, arg_name}, status)) return -1;
  const Node& node = *NodeOf(oper);
  return ListLength(node.op().inputs(), arg_name, "Input", node.InputRange(arg_name), status);
}

TF_Output TF_OperationInput(TF_Input oper_in) {
  constexpr TF_Output kNone{nullptr, -1};
  if (!HaveAll("TF_OperationInput", {oper_in.oper})) return kNone;
  const Node& node = *NodeOf(oper_in.oper);
  if (!IsIndex("TF_OperationInput", "inputs", oper_in.index, node.num_inputs())) return kNone;
  return weir::capi::HandleOf(node.input(oper_in.index));
}

void TF_OperationAllInputs(TF_Operation* oper, TF_Output* inputs, int max_inputs) {
  if (!HaveAll("TF_OperationAllInputs", {oper, inputs})) return;
  const Node& node = *NodeOf(oper);
  for (int i = 0; i < std::min(max_inputs, node.num_inputs()); ++i)
    inputs[i] = weir::capi::HandleOf(node.input(i));
}

int TF_OperationOutputNumConsumers(TF_Output oper_out) {
  return TF_OperationOutputConsumers(oper_out, nullptr, 0);
}

int TF_OperationOutputConsumers(TF_Output oper_out, TF_Input* consumers, int max_consumers) {
  if (!HaveAll("TF_OperationOutputConsumers", {oper_out.oper})) return -1;
  const Node& node = *NodeOf(oper_out.oper);
  if (!IsIndex("TF_OperationOutputConsumers", "outputs", oper_out.index, node.num_outputs()))
    return -1;
  return ForEachConsumer(node, oper_out.index, [&](int i, const TF_Input& consumer) {
    if (consumers != nullptr && i < max_consumers) consumers[i] = consumer;
  });
}

int TF_OperationNumControlInputs(TF_Operation* oper) {
  if (!HaveAll("TF_OperationNumControlInputs", {oper})) return -1;
  return static_cast<int>(NodeOf(oper)->control_inputs().size());
}

int TF_OperationGetControlInputs(TF_Operation* oper, TF_Operation** control_inputs,
                                 int max_control_inputs) {
  if (!HaveAll("TF_OperationGetControlInputs", {oper})) return -1;
  const auto controls = NodeOf(oper)->control_inputs();
  const int count = static_cast<int>(controls.size());
  for (int i = 0; control_inputs != nullptr && i < std::min(count, max_control_inputs); ++i)
    control_inputs[i] = OperationOf(controls[i]);
  return count;
}

int TF_OperationNumControlOutputs(TF_Operation* oper) {
  return TF_OperationGetControlOutputs(oper, nullptr, 0);
}

int TF_OperationGetControlOutputs(TF_Operation* oper, TF_Operation** control_outputs,
                                  int max_control_outputs) {
  if (!HaveAll("TF_OperationGetControlOutputs", {oper})) return -1;
  return ForEachControlOutput(*NodeOf(oper), [&](int i, TF_Operation* user) {
    if (control_outputs != nullptr && i < max_control_outputs) control_outputs[i] = user;
  });
}

void TF_OperationToNodeDef(TF_Operation* oper, TF_Buffer* output_node_def, TF_Status* status) {
  if (!HaveAll("TF_OperationToNodeDef", {oper, output_node_def}, status)) return;
  const Node& node = *NodeOf(oper);
  weir::proto::NodeDef def;
  weir::NodeToProto(node, &def);
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (node.input(i).index == 0 && weir::capi::UpdatedInputs::Has(&node, i))
      *def.mutable_input(i) += ":0";
  }
  weir::capi::SetBuffer(weir::DeterministicBytes(def), output_node_def);
  SetStatus(status, absl::OkStatus());
}
