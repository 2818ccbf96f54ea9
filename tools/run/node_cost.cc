#include "weir/tools/run/node_cost.h"

#include <algorithm>
#include <string>
#include <vector>

#include "weir/core/graph/op.h"
#include "weir/session/plan/internal_nodes.h"

namespace weir::tools {

namespace {

using Value = NodeTrace::Value;

constexpr double kLineBytes = 64;  // of a cache line

// The traits of the op that was run; none if nobody knows it.
const OpTraits& TraitsOf(const NodeTrace& run) {
  if (run.traits != nullptr) return *run.traits;
  const bool is_builtin = BuiltinOps().Find(run.op) != nullptr;
  return (is_builtin ? BuiltinOps() : InternalOps()).TraitsOf(run.op);
}

std::vector<OpCall::Value> CallValues(const std::vector<Value>& values) {
  std::vector<OpCall::Value> out;
  out.reserve(values.size());
  for (const Value& v : values) out.push_back({v.dtype, v.shape});
  return out;
}

double Bytes(const Value& value) { return OpCall::Value{value.dtype, value.shape}.bytes(); }

bool Begins(const Value& value, const Value& in) {
  const auto *at = static_cast<const char*>(value.data), *begin = static_cast<const char*>(in.data);
  return at == begin || (at > begin && at < begin + static_cast<size_t>(Bytes(in)));
}

// Shares memory with one of the others.
bool SharesMemory(const Value& value, const std::vector<Value>& others) {
  return value.data != nullptr && std::any_of(others.begin(), others.end(), [&](const Value& v) {
           return v.data != nullptr && (Begins(value, v) || Begins(v, value));
         });
}

// The outputs that hold elements: a Merge also returns the index of the input it has taken.
absl::Span<const Value> MovedOutputs(const NodeTrace& run) {
  const bool is_merge = TraitsOf(run).control_flow == ControlFlow::kMerge;
  return absl::MakeSpan(run.outputs).subspan(0, is_merge ? 1 : run.outputs.size());
}

// Bytes of an op that writes no variables.
double MovedBytes(const NodeTrace& run) {
  const OpTraits& traits = TraitsOf(run);
  if (traits.movement == Movement::kStored) return 0;
  const bool forwards = traits.forwards(), gathers = traits.movement == Movement::kGather;
  double bytes = 0;
  for (const Value& output : MovedOutputs(run)) {
    if (traits.only_moves() && SharesMemory(output, run.inputs)) continue;
    bytes += Bytes(output) * (forwards || gathers ? 2 : 1);
  }
  if (forwards || traits.movement == Movement::kReadsShape) return bytes;
  for (size_t i = gathers ? 1 : 0; i < run.inputs.size(); ++i) {
    const auto before = run.inputs.begin() + i;
    const bool counted = run.inputs[i].data != nullptr &&  // Mul(x, x) reads x once
                         std::any_of(run.inputs.begin(), before,
                                     [&](const Value& v) { return v.data == run.inputs[i].data; });
    const bool shared = traits.only_moves() && SharesMemory(run.inputs[i], run.outputs);
    if (!counted && !shared) bytes += Bytes(run.inputs[i]);
  }
  return bytes;
}

}  // namespace

NodeCost CostOf(const NodeTrace& run, const Node* node) {
  NodeCost cost;
  if (IsDead(run)) return cost;
  if (node != nullptr && node->op_name() != run.op) node = nullptr;  // fused into its neighbors
  const OpTraits& traits = TraitsOf(run);
  const std::vector<OpCall::Value> inputs = CallValues(run.inputs),
                                   outputs = CallValues(run.outputs);
  const OpCall call = {inputs, outputs, node, run.fused_ops};
  cost.estimated = traits.writes_variables();
  cost.bytes = traits.bytes != nullptr ? std::max(0., traits.bytes(call))
               : cost.estimated        ? VariableWriteBytes(traits, call)
                                       : MovedBytes(run);
  const double flops = Flops(traits, call);
  cost.knows_flops = flops >= 0;
  cost.flops = std::max(0., flops);
  const DataType type = BaseType(call.input(0).dtype);
  if (type == DT_DOUBLE || type == DT_COMPLEX128) cost.element_bytes = 8;
  return cost;
}

bool IsDead(const NodeTrace& run) {
  const auto is_dead = [](const Value& v) { return v.dtype == DT_INVALID; };
  return std::any_of(run.inputs.begin(), run.inputs.end(), is_dead) &&
         std::all_of(run.outputs.begin(), run.outputs.end(), is_dead);
}

bool OnlyMoves(const NodeTrace& run) { return TraitsOf(run).only_moves(); }

std::string CopyReason(const NodeTrace& run) {
  const OpTraits& traits = TraitsOf(run);
  if (!traits.only_moves() || traits.movement == Movement::kStored || IsDead(run)) return "";
  if (traits.movement == Movement::kCopy) return "between devices";
  const absl::Span<const Value> outputs = MovedOutputs(run);
  const bool copied = std::any_of(outputs.begin(), outputs.end(), [&](const Value& v) {
    return Bytes(v) >= kLineBytes && !SharesMemory(v, run.inputs);
  });
  if (!copied) return "";
  return traits.forwards() ? "could have shared its input's memory" : "rearranged";
}

}  // namespace weir::tools
