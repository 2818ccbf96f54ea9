#ifndef WEIR_OPS_CONTAINERS_DATA_FLOW_H_
#define WEIR_OPS_CONTAINERS_DATA_FLOW_H_

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"

// Partitioning and stitching of rows, averaging of gradients over several steps, and variables that
// exist for one step only.
namespace WEIR_API weir {

// Returns `num_partitions` tensors. Output p contains the slices of `data` whose entry in
// `partitions` is p, in order.
Outputs DynamicPartition(Output data, Output partitions, int64_t num_partitions,
                         absl::string_view name = {});
// Returns a tensor whose row indices[m][i] is data[m][i]. If an index occurs twice, the last
// occurrence wins. Rows without an index are zero. In ParallelDynamicStitch the winner is
// unspecified.
Output DynamicStitch(const Outputs& indices, const Outputs& data, absl::string_view name = {});
Output ParallelDynamicStitch(const Outputs& indices, const Outputs& data,
                             absl::string_view name = {});

// Accumulates gradients over several steps until they are taken. Drops stale gradients, whose step
// is less than that of the accumulator; TakeGradient increments the accumulator's step by one.
struct ConditionalAccumulatorOptions {
  // How gradients are combined.
  enum class Reduction { kMean, kSum };
  Shape shape = Shape::UnknownRank();
  std::string shared_name = {};            // with which steps share it; empty: the node's name
  Reduction reduction = Reduction::kMean;  // see Reduction
  bool use_resource = true;                // false: the reference-typed form
};
// An accumulator of dense gradients of one variable; see above.
class ConditionalAccumulator {
 public:
  // `dtype` is that of the gradients.
  ConditionalAccumulator(Graph& graph, DataType dtype,
                         const ConditionalAccumulatorOptions& options = {},
                         absl::string_view name = {});

  // Adds a gradient that was computed at `local_step`, an int64 scalar. INVALID_ARGUMENT at run
  // time for another shape.
  Operation ApplyGradient(Output gradient, Output local_step, absl::string_view name = {});
  // Returns the mean (or sum) of the gradients. The step blocks until `num_required` gradients have
  // been accumulated.
  Output TakeGradient(Output num_required, absl::string_view name = {});
  Output NumAccumulated(absl::string_view name = {});
  Operation SetGlobalStep(Output step, absl::string_view name = {});
  const Output& handle() const { return handle_; }

 private:
  std::string Op(absl::string_view suffix) const;
  Output handle_;
  DataType dtype_;
};

// Returns a reference to memory that exists until DestroyTemporaryVariable, within one step.
Output TemporaryVariable(Graph& graph, const Shape& shape, DataType dtype,
                         absl::string_view var_name = {}, absl::string_view name = {});
// Destroys the variable and returns its last value.
Output DestroyTemporaryVariable(Output ref, absl::string_view var_name,
                                absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_CONTAINERS_DATA_FLOW_H_
