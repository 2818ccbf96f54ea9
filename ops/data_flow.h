#ifndef WEIR_OPS_DATA_FLOW_H_
#define WEIR_OPS_DATA_FLOW_H_

#include "weir/core/graph.h"

// Sorting rows into bins and back, averaging gradients over steps, and variables that live for one
// step only.
namespace weir {

// `num_partitions` tensors: output p has the slices of `data` whose entry in `partitions` is p, in
// order.
Outputs DynamicPartition(Output data, Output partitions, int64_t num_partitions,
                         absl::string_view name = {});
// A tensor whose row indices[m][i] is data[m][i]; where an index comes twice, the last one wins.
// Rows that no index names are zero. ParallelDynamicStitch: which one wins is not determined.
Output DynamicStitch(const Outputs& indices, const Outputs& data, absl::string_view name = {});
Output ParallelDynamicStitch(const Outputs& indices, const Outputs& data,
                             absl::string_view name = {});

// Adds up gradients over several steps, until they are taken, and drops stale ones: those whose
// step is smaller than the accumulator's, which grows by one with every TakeGradient.
struct ConditionalAccumulatorOptions {
  enum class Reduction { kMean, kSum };
  Shape shape = Shape::UnknownRank();
  std::string shared_name = {};
  Reduction reduction = Reduction::kMean;
  bool use_resource = true;  // false: the reference-typed form
};
class ConditionalAccumulator {
 public:
  ConditionalAccumulator(Graph& graph, DataType dtype,
                         const ConditionalAccumulatorOptions& options = {},
                         absl::string_view name = {});

  Operation ApplyGradient(Output gradient, Output local_step, absl::string_view name = {});
  // The mean (or sum), once `num_required` gradients are there: the run waits for them.
  Output TakeGradient(Output num_required, absl::string_view name = {});
  Output NumAccumulated(absl::string_view name = {});
  Operation SetGlobalStep(Output step, absl::string_view name = {});
  const Output& handle() const { return handle_; }

 private:
  std::string Op(absl::string_view suffix) const;
  Output handle_;
  DataType dtype_;
};

// A reference to memory that lives until DestroyTemporaryVariable, within one step.
Output TemporaryVariable(Graph& graph, const Shape& shape, DataType dtype,
                         absl::string_view var_name = {}, absl::string_view name = {});
// Its last value.
Output DestroyTemporaryVariable(Output ref, absl::string_view var_name,
                                absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_DATA_FLOW_H_
