#ifndef WEIR_OPS_FRAMEWORK_PARTITIONED_VARIABLE_H_
#define WEIR_OPS_FRAMEWORK_PARTITIONED_VARIABLE_H_

#include <functional>
#include <string>

#include "weir/ops/framework/variable.h"

// Declarations about partitioned variables shared by the sources of variables.
namespace weir {

// Shares or creates the variable of that full name. The initializer is called with `partition`.
using PartGetter = std::function<absl::StatusOr<Variable>(
    const std::string& name, const VariableOptions& options, const PartitionInfo& partition)>;
// Implements GetVariable if there is a partitioner or (with Reuse::kReuse) a partitioned variable
// of that name. The options describe the whole variable. `created_at` is recorded for error
// messages.
absl::StatusOr<Variable> GetPartitionedVariable(Graph& graph, const std::string& name,
                                                const VariableOptions& options,
                                                const std::string& created_at,
                                                const PartGetter& get_part);

// Returns true if `v` has a single storage of its own, so that `op` can be applied to it. Returns
// false for an invalid variable. For a partitioned or mirrored variable it returns false and fails
// the graph with INVALID_ARGUMENT.
bool HasStorage(const Variable& v, absl::string_view op);

// Concatenates the results of `read` for each part along the axis on which the variable is
// partitioned, in the scope "<name>/ConcatPartitions/", under the variable's name.
Output ConcatParts(const Variable& v, const std::function<Output(const Variable&)>& read);

// Calls `write` for each part with its share of a full value. Returns the results concatenated, or
// (without read_value) grouped.
using PartWriter =
    std::function<Output(const Variable& part, const TensorArg& value, const WriteOptions&)>;
Output WriteParts(const Variable& v, const TensorArg& value, const WriteOptions& options,
                  const PartWriter& write);
// Calls `write` for each part with a separate value.
Outputs WritePartByPart(const Variable& v, const std::vector<TensorArg>& values,
                        const WriteOptions& options, const PartWriter& write);

// Returns the variables with partitioned ones replaced by their parts.
Variables FlattenParts(const Variables& variables);

}  // namespace weir

#endif  // WEIR_OPS_FRAMEWORK_PARTITIONED_VARIABLE_H_
