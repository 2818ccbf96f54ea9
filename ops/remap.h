#ifndef WEIR_OPS_REMAP_H_
#define WEIR_OPS_REMAP_H_

#include "weir/core/graph.h"

// Starting a model with the weights of one that had another vocabulary.
namespace weir {

struct VocabRemapping {
  Output remapping;    // int64: the old id of each new one, -1 if it has none
  Output num_present;  // how many have one
};
// For `num_new_vocab` lines of the new vocabulary from `new_vocab_offset` on; of the old one, the
// first `old_vocab_size` lines count (-1: all).
VocabRemapping GenerateVocabRemapping(Output new_vocab_file, Output old_vocab_file,
                                      int64_t new_vocab_offset, int64_t num_new_vocab,
                                      int64_t old_vocab_size = -1, absl::string_view name = {});

// The matrix `old_tensor_name` of a checkpoint with its rows (and columns, unless col_remapping is
// empty) as the remappings say; what has no old element takes the initializing values, in order.
struct RemapMatrixOptions {
  int64_t num_rows = 0, num_cols = 1;
  int64_t max_rows_in_memory = -1;
};
Output LoadAndRemapMatrix(Output ckpt_path, Output old_tensor_name, Output row_remapping,
                          Output col_remapping, Output initializing_values,
                          const RemapMatrixOptions& options, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_REMAP_H_
