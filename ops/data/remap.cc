#include "weir/ops/data/remap.h"
#include "weir/ops/lib/ranked_internal.h"

#include "weir/core/graph/op.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"

namespace weir {

namespace {

absl::Status VocabShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  c.set_output(0, Shape({c.attr<int64_t>("num_new_vocab")}));
  c.set_output(1, Shape());
  return absl::OkStatus();
}

absl::Status MatrixShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(3, 1).status());
  c.set_output(0, Shape({c.attr<int64_t>("num_rows"), c.attr<int64_t>("num_cols")}));
  return absl::OkStatus();
}

}  // namespace

VocabRemapping GenerateVocabRemapping(Output new_vocab_file, Output old_vocab_file,
                                      int64_t new_vocab_offset, int64_t num_new_vocab,
                                      int64_t old_vocab_size, absl::string_view name) {
  const Outputs r = AllOutputs(AddNode("GenerateVocabRemapping", {new_vocab_file, old_vocab_file},
                                       {{"new_vocab_offset", new_vocab_offset},
                                        {"num_new_vocab", num_new_vocab},
                                        {"old_vocab_size", old_vocab_size}},
                                       name),
                               2);
  return {r[0], r[1]};
}

Output LoadAndRemapMatrix(Output ckpt_path, Output old_tensor_name, Output row_remapping,
                          Output col_remapping, Output initializing_values,
                          const RemapMatrixOptions& o, absl::string_view name) {
  return AddOp("LoadAndRemapMatrix",
               {ckpt_path, old_tensor_name, row_remapping, col_remapping, initializing_values},
               {{"num_rows", o.num_rows},
                {"num_cols", o.num_cols},
                {"max_rows_in_memory", o.max_rows_in_memory}},
               name);
}

void AddRemapOps(OpRegistry* ops) {
  ops->Add(
      OpSpec("GenerateVocabRemapping")
          .In("new_vocab_file: string, old_vocab_file: string")
          .Out("remapping: int64, num_present: int32")
          .Attr("new_vocab_offset: int >= 0")
          .Attr("num_new_vocab: int >= 0")
          .Attr("old_vocab_size: int >= -1 = -1")
          .InferShape(VocabShape)
          .Doc("Maps lines of a vocabulary file to their line numbers in an older one, or -1."));
  ops->Add(OpSpec("LoadAndRemapMatrix")
               .In("ckpt_path: string, old_tensor_name: string, row_remapping: int64, "
                   "col_remapping: int64, initializing_values: float")
               .Out("output_matrix: float")
               .Attr("num_rows: int >= 0")
               .Attr("num_cols: int >= 1")
               .Attr("max_rows_in_memory: int = -1")
               .Stateful()
               .InferShape(Ranked("old_tensor_name: 0", MatrixShape))
               .Doc("Loads a matrix from a checkpoint with its rows and columns permuted, and with "
                    "given values for elements that it does not have."));
}

}  // namespace weir
