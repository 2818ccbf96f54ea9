#include "weir/core/graph/op_traits.h"

#include <algorithm>

#include "absl/algorithm/container.h"

namespace weir {

double OpCall::Value::elements() const {
  const bool counts = IsPlain(dtype) && !IsRef(dtype);
  return counts ? std::max<double>(0, shape.num_elements()) : 0;
}

double OpCall::Value::bytes() const { return elements() * ElementSize(dtype); }

namespace {

const OpCall::Value& At(absl::Span<const OpCall::Value> values, size_t i) {
  static const OpCall::Value* const nothing = new OpCall::Value;
  return i < values.size() ? values[i] : *nothing;
}

double NumVariables(const OpCall& call) {
  return static_cast<double>(absl::c_count_if(call.inputs, [](const OpCall::Value& v) {
    return v.dtype == DT_RESOURCE || IsRef(v.dtype);
  }));
}

}  // namespace

const OpCall::Value& OpCall::input(size_t i) const { return At(inputs, i); }
const OpCall::Value& OpCall::output(size_t i) const { return At(outputs, i); }

const OpCall::Value& OpCall::largest_input() const {
  const Value* largest = &input(inputs.size());
  for (const Value& v : inputs) {
    if (v.bytes() > largest->bytes()) largest = &v;
  }
  return *largest;
}

double VariableWriteBytes(const OpTraits& traits, const OpCall& call) {
  const double accesses = traits.variable_use == VariableUse::kUpdates ? 2 : 1;
  double bytes = accesses * NumVariables(call) * call.largest_input().bytes();
  for (const OpCall::Value& input : call.inputs) bytes += input.bytes();
  return bytes;
}

double Flops(const OpTraits& traits, const OpCall& call) {
  if (traits.flops != nullptr) return traits.flops(call);
  if (traits.writes_variables()) return 2 * NumVariables(call) * call.largest_input().elements();
  if (traits.only_moves() || traits.movement == Movement::kReadsShape) return 0;
  if (traits.reduction) return call.input(0).elements();
  return traits.elementwise ? call.output(0).elements() : -1;
}

}  // namespace weir
