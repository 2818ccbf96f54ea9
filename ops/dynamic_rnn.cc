#include "weir/ops/dynamic_rnn.h"

#include "weir/core/scope.h"
#include "weir/ops/array.h"
#include "weir/ops/initializers.h"
#include "weir/ops/math.h"
#include "weir/ops/nn.h"
#include "weir/ops/tensor_array.h"
#include "weir/ops/variable_scope.h"
#include "weir/ops/variables.h"
#include "weir/ops/while_loop.h"

namespace weir {

namespace {

RnnStep LstmStep(int64_t units, const LstmOptions& options, const Output& input,
                 const Outputs& state) {
  if (!input || state.size() != 2 || !state[0] || !state[1]) return {};
  Graph& g = input.graph();
  const VariableScope scope(g, options.name);
  const Output &c = state[0], &h = state[1];
  const Variable kernel = GetVariable(g, "kernel", {input.dim(-1) + units, 4 * units});
  const Variable bias = GetVariable(g, "bias", {4 * units}, Zeros());
  const Output gates = BiasAdd(MatMul(Concat({input, h}, 1), kernel.value()), bias.value());
  // The gates for what comes in, the candidate, what is forgotten, what is shown.
  const Outputs parts = Split(gates, 4, 1);
  if (parts.size() != 4) return {};
  const Output kept = c * Sigmoid(parts[2] + options.forget_bias);
  const Output next = kept + Sigmoid(parts[0]) * Tanh(parts[1]);
  const Output shown = Tanh(next) * Sigmoid(parts[3]);
  return {shown, {next, shown}};
}

// Batch and step change places.
Output Swapped(const Output& x) { return x ? Transpose(x, {1, 0, 2}) : x; }

class RnnBuilder {
 public:
  RnnBuilder(const RnnCell& cell, const Output& inputs, const DynamicRnnOptions& options)
      : cell_(cell), inputs_(inputs), options_(options), g_(inputs.graph()) {}

  RnnStep Build(const Outputs& initial_state) {
    const Output shape = ShapeTensor(inputs_);
    if (!shape) return {};
    steps_ = StridedSlice(shape, {0});
    const Shape& known = inputs_.shape();
    rows_ = TensorArray(g_, inputs_.dtype(), steps_,
                        {.element_shape = known.rank() == 3 ? known.Sub(1) : Shape::UnknownRank(),
                         .tensor_array_name = options_.name + "/input_0"})
                .Unstack(inputs_);
    outputs_ = TensorArray(g_, inputs_.dtype(), steps_,
                           {.tensor_array_name = options_.name + "/output_0"});
    const Output time = Const(g_, 0, "time");
    Outputs vars = {time, outputs_.flow()};
    vars.insert(vars.end(), initial_state.begin(), initial_state.end());
    const Outputs last = WhileLoop([this](const Outputs& v) { return Less(v[0], steps_); },
                                   [this](const Outputs& v) { return Step(v); }, vars,
                                   {.parallel_iterations = options_.parallel_iterations});
    if (last.empty()) return {};
    return {outputs_.WithFlow(last[1]).Stack(), {last.begin() + 2, last.end()}};
  }

 private:
  Outputs Step(const Outputs& v) {
    const Outputs state(v.begin() + 2, v.end());
    RnnStep step = cell_(rows_.Read(v[0]), state);
    if (!step.output) return {};
    if (step.state.size() != state.size()) {
      g_.Fail(InvalidArgument("The cell of '", options_.name, "' returned ", step.state.size(),
                              " tensors of state, but was given ", state.size()));
      return {};
    }
    if (options_.sequence_length) PassThrough(v[0], state, &step);
    Outputs next = {v[0] + 1, outputs_.WithFlow(v[1]).Write(v[0], step.output).flow()};
    next.insert(next.end(), step.state.begin(), step.state.end());
    return next;
  }

  // Rows that have come to their end.
  void PassThrough(const Output& time, const Outputs& state, RnnStep* step) {
    const Output length = options_.sequence_length;
    const Output ended = ExpandDims(GreaterEqual(Cast(time, length.dtype()), length), 1);
    step->output = SelectV2(ended, ZerosLike(step->output), step->output);
    for (size_t i = 0; i < state.size(); ++i)
      step->state[i] = SelectV2(ended, state[i], step->state[i]);
  }

  const RnnCell& cell_;
  const Output inputs_;
  const DynamicRnnOptions& options_;
  Graph& g_;
  Output steps_;
  TensorArray rows_, outputs_;
};

}  // namespace

RnnCell BasicLstmCell(int64_t units, const LstmOptions& options) {
  return [units, options](const Output& input, const Outputs& state) {
    return LstmStep(units, options, input, state);
  };
}

RnnStep DynamicRnn(const RnnCell& cell, Output inputs, const Outputs& initial_state,
                   const DynamicRnnOptions& options) {
  if (!inputs) return {};
  const VariableScope scope(inputs.graph(), options.name);
  RnnStep result =
      RnnBuilder(cell, options.time_major ? inputs : Swapped(inputs), options).Build(initial_state);
  if (!options.time_major) result.output = Swapped(result.output);
  return result;
}

}  // namespace weir
