#ifndef WEIR_OPS_NN_RNN_H_
#define WEIR_OPS_NN_RNN_H_

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"

// Recurrent cells as a single op: faster than a cell composed of elementary ops, and differentiable
// as a whole.
namespace WEIR_API weir {

// The results of one step of an LSTM cell (or, with a leading time dimension, of many): the gates,
// the state before and after tanh, and the output h.
struct LstmStates {
  Output i, cs, f, o, ci, co, h;  // each [batch, n], or [time, batch, n]
};

// Options of the LSTM ops.
struct LstmBlockOptions {
  float forget_bias = 1;  // added to the bias of the forget gate
  float cell_clip = 3;    // clips the state to [-cell_clip, cell_clip]; not positive: no clipping
  bool use_peephole = false;  // whether gates see the state through wci, wcf and wco
};

// The weights of an LSTM cell with `n` units and inputs of size `m`: w [m + n, 4n] and b [4n],
// whose columns are input gate, candidate, forget gate and output gate. The peephole weights wci,
// wcf, wco [n] are used only if the options enable them.
struct LstmWeights {
  Output w, wci, wcf, wco, b;  // see above
};

// One step: x [batch, m], cs_prev and h_prev [batch, n].
LstmStates LstmBlockCell(Output x, Output cs_prev, Output h_prev, const LstmWeights& weights,
                         const LstmBlockOptions& options = {}, absl::string_view name = {});
// Computes the first `seq_len_max` (int64) steps of x [time, batch, m]. The results of later steps
// are zero.
LstmStates BlockLstm(Output seq_len_max, Output x, Output cs_prev, Output h_prev,
                     const LstmWeights& weights, const LstmBlockOptions& options = {},
                     absl::string_view name = {});

// The results of one step of a gated recurrent unit: reset gate, update gate, candidate, output.
struct GruStates {
  Output r, u, c, h;  // each [batch, n]
};
// One step of a gated recurrent unit: x [batch, m], h_prev [batch, n], w_ru [m + n, 2n], w_c [m +
// n, n], b_ru [2n], b_c [n].
GruStates GruBlockCell(Output x, Output h_prev, Output w_ru, Output w_c, Output b_ru, Output b_c,
                       absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_NN_RNN_H_
