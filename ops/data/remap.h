#ifndef WEIR_OPS_DATA_REMAP_H_
#define WEIR_OPS_DATA_REMAP_H_

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"

// Initializes a model with the weights of a model that has a different vocabulary.
namespace WEIR_API weir {

// What GenerateVocabRemapping returns.
struct VocabRemapping {
  Output remapping;    // int64: the old id of each new id, -1 if there is none
  Output num_present;  // the number of new ids that have an old id
};
// Maps `num_new_vocab` lines of the new vocabulary, starting at `new_vocab_offset`. Only the first
// `old_vocab_size` lines of the old vocabulary count (-1: all).
VocabRemapping GenerateVocabRemapping(Output new_vocab_file, Output old_vocab_file,
                                      int64_t new_vocab_offset, int64_t num_new_vocab,
                                      int64_t old_vocab_size = -1, absl::string_view name = {});

// The shape of the result of LoadAndRemapMatrix, and how many rows of the old matrix it reads at a
// time (-1: all).
struct RemapMatrixOptions {
  int64_t num_rows = 0, num_cols = 1;  // of the new matrix
  int64_t max_rows_in_memory = -1;     // -1: all
};
// Loads the matrix `old_tensor_name` of a checkpoint and permutes its rows (and columns, unless
// col_remapping is empty) as the remappings specify. Elements without an old element take the
// initializing values, in order.
Output LoadAndRemapMatrix(Output ckpt_path, Output old_tensor_name, Output row_remapping,
                          Output col_remapping, Output initializing_values,
                          const RemapMatrixOptions& options, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_DATA_REMAP_H_
