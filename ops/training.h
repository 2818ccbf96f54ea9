#ifndef WEIR_OPS_TRAINING_H_
#define WEIR_OPS_TRAINING_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// The update rules of optimizers as ops: ApplyX, SparseApplyX on reference variables,
// ResourceApplyX, ResourceSparseApplyX on resource variables. They are built by ops/optimizers.h.
namespace weir {

// One rule: what its four ops have in common. Kernels are made from the same table.
struct UpdateRule {
  absl::string_view name;                // "Adam"
  std::vector<absl::string_view> slots;  // variables after "var": "m", "v"
  // The tensors that follow the variables, in order. "grad" (or "delta") has the variable's shape
  // and in the sparse form comes with "indices"; "global_step" is an int64 scalar; all others are
  // scalars of the variable's type.
  std::vector<absl::string_view> inputs;
  std::vector<absl::string_view> attrs = {};  // besides T, Tindices, use_locking
  bool has_sparse = true;                     // SparseApply forms exist
  bool has_ref = true;                        // forms for references exist
  absl::string_view doc = {};
};
const std::vector<UpdateRule>& UpdateRules();

// The argument of the gradient: "delta" in the dense form of the two rules of gradient descent,
// else "grad".
bool IsGradientArg(absl::string_view input);

}  // namespace weir

#endif  // WEIR_OPS_TRAINING_H_
