#ifndef WEIR_OPS_FRAMEWORK_COND_H_
#define WEIR_OPS_FRAMEWORK_COND_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/lib/literal.h"

// A conditional that the step evaluates (TensorFlow 1's tf.cond).
namespace WEIR_API weir {

// Returns the outputs of `if_true()` or `if_false()`, depending on `pred`, a bool scalar. Both
// functions are called once, at graph construction; the nodes they add run only if their branch is
// taken. Tensors from outside are computed in any case and enter the branch through a Switch. Outer
// control dependencies apply inside a branch as well. Variables created in a branch are placed
// outside of it.
//
//   Output y = Cond(training, [&] { return Dropout(x, 0.5); }, [&] { return Identity(x); });
//
// INVALID_ARGUMENT on the graph if the branches return different numbers of outputs, or outputs of
// different dtypes. A Cond that fails returns as many invalid outputs as its branches would.
using BranchFn = std::function<Output()>;
using BranchListFn = std::function<Outputs()>;
Output Cond(Output pred, const BranchFn& if_true, const BranchFn& if_false,
            absl::string_view name = "cond");
Outputs Cond(Output pred, const BranchListFn& if_true, const BranchListFn& if_false,
             absl::string_view name = "cond");

// For branches with side effects. Returns an op that completes when the op of the taken branch
// completes.
Operation CondRun(Output pred, const std::function<Operation()>& if_true,
                  const std::function<Operation()>& if_false, absl::string_view name = "cond");

// Implements the Python function tf.Assert: fails the step with INVALID_ARGUMENT, printing `data`,
// if `condition`, a bool scalar, is false. Strings in `data` are literals. `data` is always
// computed but is copied to the host only if the condition is false. `name` is the name scope.
Operation AssertThat(Output condition, const std::vector<TensorArg>& data,
                     absl::string_view name = "Assert");

}  // namespace weir

#endif  // WEIR_OPS_FRAMEWORK_COND_H_
