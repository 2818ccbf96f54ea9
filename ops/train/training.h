#ifndef WEIR_OPS_TRAIN_TRAINING_H_
#define WEIR_OPS_TRAIN_TRAINING_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// The update rules of optimizers as ops: ApplyX and SparseApplyX on ref variables, ResourceApplyX
// and ResourceSparseApplyX on resource variables. ops/train/optimizers.h builds them.
namespace weir {

// One rule: the properties that its four ops share. Kernels are generated from the same list.
struct UpdateRule {
  absl::string_view name;                // "Adam"
  std::vector<absl::string_view> slots;  // variables after "var": "m", "v"
  // The tensors after the variables, in order. "grad" (or "delta") has the variable's shape and is
  // followed by "indices" in the sparse form; "global_step" is an int64 scalar; all others are
  // scalars of the variable's type.
  std::vector<absl::string_view> inputs;
  std::vector<absl::string_view> attrs = {};  // besides T, Tindices and use_locking
  bool has_sparse = true;                     // SparseApply ops exist
  bool has_ref = true;                        // ops for ref variables exist
  absl::string_view doc = {};
};
const std::vector<UpdateRule>& UpdateRules();

// Returns whether `input` is the gradient: "delta" in the dense form of the two rules of gradient
// descent, and "grad" otherwise.
bool IsGradientArg(absl::string_view input);

}  // namespace weir

#endif  // WEIR_OPS_TRAIN_TRAINING_H_
