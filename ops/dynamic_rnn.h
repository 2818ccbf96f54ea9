#ifndef WEIR_OPS_DYNAMIC_RNN_H_
#define WEIR_OPS_DYNAMIC_RNN_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weir/core/graph.h"

// Recurrent networks: a cell that is run once for each step of a sequence, in a loop of the graph.
namespace weir {

// What a cell makes of one step: rows of a batch, and the state for the next step.
struct RnnStep {
  Output output;
  Outputs state;
};
using RnnCell = std::function<RnnStep(const Output& input, const Outputs& state)>;

struct LstmOptions {
  // Added to the bias of the forget gate, so that it begins by keeping most.
  float forget_bias = 1;
  // The variable scope of `kernel` and `bias`; a second cell in a scope that is reused shares them.
  std::string name = "basic_lstm_cell";
};
// A long short-term memory of that many units (tf.nn.rnn_cell.BasicLSTMCell): its state is {c, h},
// its output h. The variables are made when it is called first.
RnnCell BasicLstmCell(int64_t units, const LstmOptions& options = {});

struct DynamicRnnOptions {
  // How many steps of each row count, as int32 or int64; later ones give zeros, and leave the state
  // alone. Default: all.
  Output sequence_length = {};
  // [step, batch, depth] instead of [batch, step, depth], for inputs and outputs.
  bool time_major = false;
  int64_t parallel_iterations = 32;
  // The size of the cell's outputs. Default: that of its last state, which most cells show.
  std::optional<int64_t> output_size = {};
  std::string name = "rnn";
};

// The outputs of all steps, and the last state (tf.nn.dynamic_rnn). As many steps as the inputs
// have when run. `initial_state` has what the cell takes, all of one type, which is that of the
// outputs.
//
// INVALID_ARGUMENT on the graph if the inputs' rank, their depth or the outputs' size is not known,
// or if the cell returns another number of states.
//
//   const RnnCell cell = BasicLstmCell(128);
//   const Output zero = Zeros(g, {32, 128});
//   RnnStep r = DynamicRnn(cell, inputs, {zero, zero});
RnnStep DynamicRnn(const RnnCell& cell, Output inputs, const Outputs& initial_state,
                   const DynamicRnnOptions& options = {});

}  // namespace weir

#endif  // WEIR_OPS_DYNAMIC_RNN_H_
