#ifndef WEIR_OPS_NN_CTC_H_
#define WEIR_OPS_NN_CTC_H_

#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/sparse/sparse.h"

// Connectionist temporal classification: loss and decoding for networks that label sequences whose
// alignment is unknown. Activations are [time, batch, classes], before softmax; the last class is
// the blank. Labels are a sparse [batch, position] matrix of int32 (decoded results: int64).
namespace WEIR_API weir {

// Options of CtcLoss.
struct CtcLossOptions {
  bool preprocess_collapse_repeated = false;  // merges repeated labels before the loss is computed
  bool ctc_merge_repeated = true;  // merges repeated labels on a path; false is not standard CTC
  bool ignore_longer_outputs_than_inputs = false;  // their loss is 0 instead of an error
};
// Returns -log of the probability of each sequence's labels.
Output CtcLoss(const SparseTensor& labels, Output inputs, Output sequence_length,
               const CtcLossOptions& options = {}, absl::string_view name = {});

// Decoded sequences, best first, and their log-probabilities [batch, paths] (for the greedy
// decoder: minus the sum of the largest activations).
struct CtcDecoded {
  std::vector<SparseTensor> paths;  // one for the greedy decoder
  Output log_probability;           // float
};
// Selects the most likely class at each time step.
CtcDecoded CtcGreedyDecoder(Output inputs, Output sequence_length, bool merge_repeated = true,
                            int blank_index = -1, absl::string_view name = {});

// Options of CtcBeamSearchDecoder.
struct CtcBeamSearchOptions {
  int beam_width = 100;        // prefixes that are kept at each time step
  int top_paths = 1;           // results per sequence, at most beam_width
  bool merge_repeated = true;  // in the result: "aab" becomes "ab"
};
// Searches for the most likely label sequences, summing over the paths that give the same one.
// `sequence_length` is int32 [batch].
CtcDecoded CtcBeamSearchDecoder(Output inputs, Output sequence_length,
                                const CtcBeamSearchOptions& options = {},
                                absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_NN_CTC_H_
