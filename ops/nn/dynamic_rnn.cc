#include "weir/ops/nn/dynamic_rnn.h"

#include "weir/core/graph/scope.h"
#include "weir/ops/containers/tensor_array.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/flow_context.h"
#include "weir/ops/framework/initializers.h"
#include "weir/ops/framework/variable_scope.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"

namespace weir {

namespace {

RnnStep LstmStep(int64_t units, const LstmOptions& options, const Output& input,
                 const Outputs& state) {
  if (!input.valid() || state.size() != 2 || !state[0].valid() || !state[1].valid()) return {};
  Graph& g = input.graph();
  const VariableScope scope(g, options.name);
  const Output &c = state[0], &h = state[1];
  const Variable kernel = GetVariable(g, "kernel", {input.dim(-1) + units, 4 * units});
  const Variable bias = GetVariable(g, "bias", {4 * units}, Zeros());
  const Output gates = BiasAdd(MatMul(Concat({input, h}, 1), kernel.value()), bias.value());
  // The parts are the input gate, the candidate (new input), the forget gate and the output gate.
  const Outputs parts = Split(gates, 4, 1);
  if (parts.size() != 4) return {};
  const Output retained = c * Sigmoid(parts[2] + options.forget_bias);
  const Output next = retained + Sigmoid(parts[0]) * Tanh(parts[1]);
  const Output output = Tanh(next) * Sigmoid(parts[3]);
  return {output, {next, output}};
}

// Swaps the batch and time dimensions.
Output SwapBatchAndTime(const Output& x) {
  if (!x.valid()) return x;
  Graph& g = x.graph();
  const Output rest = Range(g, 2, Rank(x), 1);
  Output order;
  {
    const NameScope scope(g, "concat");
    const Output first = Ints({1, 0}).In(g, "values_0");
    order = AddOp("ConcatV2", {Outputs{first, rest}, Const(g, 0, "axis")}, {}, scope.name());
  }
  const Output swapped = Transpose(x, order);
  if (!swapped.valid() || x.shape().rank() < 2) return swapped;
  Shape shape = x.shape();
  shape.set_dim(0, x.dim(1));
  shape.set_dim(1, x.dim(0));
  g.Fail(g.RefineShape(swapped, shape));
  return swapped;
}

// Builds the loop with the structure and the node names of TensorFlow's rnn.py.
class RnnBuilder {
 public:
  // `inputs`: [time, batch, depth].
  RnnBuilder(const RnnCell& cell, const Output& inputs, const DynamicRnnOptions& options)
      : cell_(cell), inputs_(inputs), options_(options), g_(inputs.graph()) {}

  RnnStep Build(const Outputs& initial_state) {
    g_.Fail(FindSizes(initial_state));
    if (!g_.status().ok()) return {};
    lengths_ = CheckedLengths();
    steps_ = StridedSlice(ShapeTensor(inputs_), {0});
    const DataType dtype = initial_state.back().dtype();
    const Output zeros_shape = Concat({BatchVector(), Ints({size_}).In(g_, "Const")}, 0);
    zeros_ = Zeros(g_, zeros_shape, dtype);
    Output last_step = steps_;
    if (lengths_.valid()) {
      ReduceMin(lengths_);
      last_step = ReduceMax(lengths_);
    }
    const Output time = Const(g_, 0, "time");
    MakeArrays(dtype);
    // The loop runs at least one step, from which the arrays learn their shapes.
    const Output one = Const(g_, 1, "Maximum/x");
    bound_ = Minimum(steps_, AddOp("Maximum", {one, last_step}));
    Outputs vars = {time, outputs_.flow()};
    vars.insert(vars.end(), initial_state.begin(), initial_state.end());
    const Outputs last = WhileLoop(
        [this](const Outputs& v) { return Less(v[0], bound_); },
        [this](const Outputs& v) { return Step(v); }, vars,
        {.parallel_iterations = options_.parallel_iterations, .maximum_iterations = Ints(steps_)});
    if (last.empty() || !last[0].valid()) return {};
    return {StackOutputs(last[1]), {last.begin() + 2, last.end()}};
  }

 private:
  absl::Status FindSizes(const Outputs& initial_state) {
    const Shape& shape = inputs_.shape();
    if (shape.rank() < 3 || !shape.Sub(2).IsFullyDefined()) {
      return InvalidArgument("Input size (depth of inputs) of '", options_.name,
                             "' must be accessible via shape inference, but saw ",
                             shape.ToString());
    }
    if (initial_state.empty() || !initial_state.back().valid())
      return InvalidArgument("'", options_.name, "' needs an initial state");
    const Output& output = initial_state.back();
    size_ = options_.output_size.value_or(output.shape().rank() > 0 ? output.dim(-1) : -1);
    if (size_ >= 0) return absl::OkStatus();
    return InvalidArgument("The size of the outputs of '", options_.name,
                           "' cannot be inferred from its state: set output_size");
  }

  // Returns the sequence lengths after checking that there is one for each row of the batch.
  Output CheckedLengths() {
    if (!options_.sequence_length.valid()) return {};
    const Output given = options_.sequence_length;
    const Output lengths =
        Identity(given.dtype() == DT_INT32 ? given : Cast(given, DT_INT32), "sequence_length");
    const bool is_static = inputs_.dim(1) >= 0;
    const Output batch = is_static ? Output() : StridedSlice(ShapeTensor(inputs_), {1});
    const Output shape = ShapeTensor(lengths);
    const Output expected = is_static ? Ints({inputs_.dim(1)}).In(g_, "stack") : Stack({batch});
    if (!shape.valid() || !expected.valid()) return {};
    const Operation check =
        AssertThat(ReduceAll(Equal(shape, expected)),
                   {absl::StrCat("Expected shape for Tensor ", lengths.name(), " is "), expected,
                    " but saw shape: ", shape});
    const ControlDependencies after(g_, {check});
    return Identity(lengths, "CheckSeqLen");
  }

  // Returns the batch size as a vector.
  Output BatchVector() {
    if (inputs_.dim(1) >= 0) return Ints({inputs_.dim(1)}).In(g_, "Const");
    return ExpandDims(StridedSlice(ShapeTensor(inputs_), {1}), 0);
  }

  void MakeArrays(DataType dtype) {
    const std::string scope = NameScope(g_, "dynamic_rnn").name();
    TensorArrayOptions options;
    options.element_shape = Shape({inputs_.dim(1), size_});
    options.tensor_array_name = scope + "output_0";
    outputs_ = TensorArray(g_, dtype, steps_, options);
    options.element_shape = inputs_.shape().Sub(1);
    options.tensor_array_name = scope + "input_0";
    rows_ = TensorArray(g_, inputs_.dtype(), steps_, options).Unstack(inputs_);
  }

  // Returns the outputs of all steps. `flow` is the flow of their array after the loop.
  Output StackOutputs(const Output& flow) {
    const Output all = outputs_.WithFlow(flow).Stack();
    const Shape shape({inputs_.dim(0), inputs_.dim(1), size_});
    // TensorFlow creates these unused constants when it computes the static shape.
    if (shape.dim(0) >= 0 && shape.dim(1) >= 0) Ints({shape.dim(0), shape.dim(1)}).In(g_, "Const");
    Ints({size_}).In(g_, "Const");
    if (all.valid()) g_.Fail(g_.RefineShape(all, shape));
    return all;
  }

  Outputs Step(const Outputs& v) {
    const Outputs state(v.begin() + 2, v.end());
    const Output row = rows_.Read(v[0]);
    const Output ended = lengths_.valid() ? GreaterEqual(v[0], lengths_) : Output();
    RnnStep step = cell_(row, state);
    if (!step.output.valid()) return {};
    if (step.state.size() != state.size()) {
      g_.Fail(InvalidArgument("The cell of '", options_.name, "' returned ", step.state.size(),
                              " state tensors; expected ", state.size()));
      return {};
    }
    if (ended.valid()) {
      step.output = SelectUnlessEnded(ended, zeros_, step.output);
      for (size_t i = 0; i < state.size(); ++i)
        step.state[i] = SelectUnlessEnded(ended, state[i], step.state[i]);
    }
    Outputs next = {Output(), outputs_.WithFlow(v[1]).Write(v[0], step.output).flow()};
    next[0] = v[0] + 1;
    next.insert(next.end(), step.state.begin(), step.state.end());
    return next;
  }

  // Returns the old value in rows whose sequence has ended and the new value in all others.
  Output SelectUnlessEnded(const Output& ended, const Output& old_value, const Output& new_value) {
    if (!new_value.valid() || old_value.shape().rank() == 0) return new_value;
    const ColocateWith beside(g_, new_value.node);
    return AddOp("Select", {ended, old_value, new_value});
  }

  const RnnCell& cell_;
  const Output inputs_;
  const DynamicRnnOptions& options_;
  Graph& g_;
  int64_t size_ = -1;  // of the outputs
  Output lengths_, steps_, zeros_, bound_;
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
  const RnnStep failed = {Output(), Outputs(initial_state.size())};
  if (!inputs.valid()) return failed;
  // Variables are read once per step, unless an enclosing loop could change them.
  Graph& g = inputs.graph();
  VariableScopeOptions variables;
  if (LoopAround(FlowStack::Of(g).current()) == nullptr &&
      !CurrentVariableScope(g)->caching_device.has_value()) {
    variables.caching_device = "";
  }
  const VariableScope scope(g, options.name, variables);
  const Output rows = options.time_major ? inputs : SwapBatchAndTime(inputs);
  if (!rows.valid()) return failed;
  RnnStep result = RnnBuilder(cell, rows, options).Build(initial_state);
  if (result.state.empty()) return failed;
  if (!options.time_major) result.output = SwapBatchAndTime(result.output);
  return result;
}

}  // namespace weir
