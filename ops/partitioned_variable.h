#ifndef WEIR_OPS_PARTITIONED_VARIABLE_H_
#define WEIR_OPS_PARTITIONED_VARIABLE_H_

#include <functional>
#include <string>

#include "weir/ops/variable.h"

// What the sources of variables share about partitioned ones.
namespace weir {

// Shares or makes the variable of that full name; the initializer gets `partition`.
using PartGetter = std::function<absl::StatusOr<Variable>(
    const std::string& name, const VariableOptions& options, const PartitionInfo& partition)>;
// What GetVariable does where there is a partitioner, or (with Reuse::kReuse) a partitioned
// variable of that name. The options are those of the whole. `made_at` is remembered for messages.
absl::StatusOr<Variable> GetPartitionedVariable(Graph& graph, const std::string& name,
                                                const VariableOptions& options,
                                                const std::string& made_at,
                                                const PartGetter& get_part);

// True if `v` has one storage, its own, and `op` can be done on it. An invalid variable gives
// false, a partitioned or mirrored one also fails the graph with INVALID_ARGUMENT.
bool HasStorage(const Variable& v, absl::string_view op);

// The parts' tensors as one, along the axis that the variable is cut on: what `read` makes of each
// part, in the scope "<name>/ConcatPartitions/", under the variable's name.
Output JoinParts(const Variable& v, const std::function<Output(const Variable&)>& read);

// `write` on each part, with its share of a full value. The results joined, or (without read_value)
// grouped.
using PartWriter =
    std::function<Output(const Variable& part, const TensorArg& value, const WriteOptions&)>;
Output WriteParts(const Variable& v, const TensorArg& value, const WriteOptions& options,
                  const PartWriter& write);
// `write` on each part, with a value of its own.
Outputs WritePartByPart(const Variable& v, const std::vector<TensorArg>& values,
                        const WriteOptions& options, const PartWriter& write);

// The same variables, partitioned ones replaced by their parts.
Variables FlattenParts(const Variables& variables);

}  // namespace weir

#endif  // WEIR_OPS_PARTITIONED_VARIABLE_H_
