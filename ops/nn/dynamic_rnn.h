#ifndef WEIR_OPS_NN_DYNAMIC_RNN_H_
#define WEIR_OPS_NN_DYNAMIC_RNN_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"

// Recurrent neural networks: a loop in the graph runs a cell once for each time step of a sequence.
namespace WEIR_API weir {

// The result of a cell for one time step: the output, one row for each element of the batch, and
// the state for the next time step.
struct RnnStep {
  Output output;  // [batch, units]
  Outputs state;  // as the cell takes it
};
// A cell: from an input [batch, depth] and a state to the step's result. Called once, while the
// graph is built.
using RnnCell = std::function<RnnStep(const Output& input, const Outputs& state)>;

// Options of BasicLstmCell.
struct LstmOptions {
  // Added to the bias of the forget gate, so that an untrained cell keeps most of its state.
  float forget_bias = 1;
  // The variable scope of `kernel` and `bias`. A second cell in a reused scope shares them.
  std::string name = "basic_lstm_cell";
};
// Returns a long short-term memory cell with `units` units (tf.nn.rnn_cell.BasicLSTMCell). Its
// state is {c, h} and its output is h. The variables are created on the first call.
RnnCell BasicLstmCell(int64_t units, const LstmOptions& options = {});

// Options of DynamicRnn.
struct DynamicRnnOptions {
  // The number of valid time steps of each row, as int32 or int64. Later time steps output zeros
  // and do not change the state. Default: all time steps are valid.
  Output sequence_length = {};
  // Inputs and outputs are [time, batch, depth] instead of [batch, time, depth].
  bool time_major = false;
  int64_t parallel_iterations = 32;
  // The size of the cell's outputs. Default: the size of the last state, which is the output of
  // most cells.
  std::optional<int64_t> output_size = {};
  std::string name = "rnn";
};

// Returns the outputs of all time steps and the final state (tf.nn.dynamic_rnn). The number of time
// steps is that of the inputs at run time. `initial_state` holds the cell's state tensors, all of
// one dtype, which is also the dtype of the outputs.
//
// INVALID_ARGUMENT on the graph if the rank or depth of the inputs or the size of the outputs is
// unknown, or if the cell returns a different number of state tensors.
//
//   const RnnCell cell = BasicLstmCell(128);
//   const Output zero = Zeros(g, {32, 128});
//   RnnStep r = DynamicRnn(cell, inputs, {zero, zero});
RnnStep DynamicRnn(const RnnCell& cell, Output inputs, const Outputs& initial_state,
                   const DynamicRnnOptions& options = {});

}  // namespace weir

#endif  // WEIR_OPS_NN_DYNAMIC_RNN_H_
