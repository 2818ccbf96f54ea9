#ifndef WEIR_OPS_CTC_H_
#define WEIR_OPS_CTC_H_

#include <vector>

#include "weir/core/graph.h"
#include "weir/ops/sparse.h"

// Connectionist temporal classification: training and reading networks that label sequences whose
// alignment is not known. Activations are [time, batch, classes], before softmax; the last class is
// blank. A sparse matrix [batch, position] of int32 (results: int64) holds the labels.
namespace weir {

struct CtcLossOptions {
  bool preprocess_collapse_repeated = false;       // labels that repeat become one, before all else
  bool ctc_merge_repeated = true;                  // of a path: false is not what CTC is
  bool ignore_longer_outputs_than_inputs = false;  // gives them loss 0 instead of an error
};
// -log of the probability of each sequence's labels.
Output CtcLoss(const SparseTensor& labels, Output inputs, Output sequence_length,
               const CtcLossOptions& options = {}, absl::string_view name = {});

// Decoded sequences, best first, and their log-probabilities [batch, paths] (of the greedy decoder:
// minus the sum of the best activations).
struct CtcDecoded {
  std::vector<SparseTensor> paths;
  Output log_probability;
};
// The likeliest class at each step.
CtcDecoded CtcGreedyDecoder(Output inputs, Output sequence_length, bool merge_repeated = true,
                            int blank_index = -1, absl::string_view name = {});

struct CtcBeamSearchOptions {
  int beam_width = 100;
  int top_paths = 1;
  bool merge_repeated = true;  // of the result: "aab" becomes "ab"
};
CtcDecoded CtcBeamSearchDecoder(Output inputs, Output sequence_length,
                                const CtcBeamSearchOptions& options = {},
                                absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_CTC_H_
