#ifndef WEIR_OPS_COND_H_
#define WEIR_OPS_COND_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/graph.h"
#include "weir/ops/literal.h"

// A choice between two branches made in the step (tf.cond of TensorFlow 1).
namespace weir {

// The outputs of `if_true()` or `if_false()`, whichever `pred`, a bool scalar, chooses. Both are
// called once, now; what they build runs only if its branch is taken. What they use from outside
// runs in any case, and reaches the branch through a Switch. Control dependencies from outside hold
// in a branch as well. Variables made in a branch lie outside of it.
//
//   Output y = Cond(training, [&] { return Dropout(x, 0.5); }, [&] { return Identity(x); });
//
// INVALID_ARGUMENT on the graph if the branches give different numbers of outputs, or outputs of
// different types. A Cond that fails gives as many invalid outputs as its branches promise.
using BranchFn = std::function<Output()>;
using BranchListFn = std::function<Outputs()>;
Output Cond(Output pred, const BranchFn& if_true, const BranchFn& if_false,
            absl::string_view name = "cond");
Outputs Cond(Output pred, const BranchListFn& if_true, const BranchListFn& if_false,
             absl::string_view name = "cond");

// For branches that are run for their effects: an op that is done when the one taken is.
Operation CondRun(Output pred, const std::function<Operation()>& if_true,
                  const std::function<Operation()>& if_false, absl::string_view name = "cond");

// tf.Assert, the function: fails the run with INVALID_ARGUMENT, showing `data`, if `condition`, a
// bool scalar, is false. Texts in `data` are literals. What is only shown is computed in any case,
// but leaves its device only if the condition is false. Scope `name`.
Operation AssertThat(Output condition, const std::vector<TensorArg>& data,
                     absl::string_view name = "Assert");

}  // namespace weir

#endif  // WEIR_OPS_COND_H_
