#ifndef WEIR_OPS_DATA_DATASET_BUILD_INTERNAL_H_
#define WEIR_OPS_DATA_DATASET_BUILD_INTERNAL_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/ops/data/dataset.h"
#include "weir/ops/lib/common_shape.h"

// Helpers of the builders of data sets.
namespace weir {

// The attributes `output_types` and `output_shapes`, and `more`.
Attrs ElementAttrs(const ElementSpec& spec, Attrs more = {});
// Returns the data set of a new node that has the attributes of its elements.
Dataset AddDataset(absl::string_view op, absl::Span<const Arg> args, const ElementSpec& spec,
                   Attrs attrs = {});
// Returns constants `seed` and `seed2` for a seed of the graph and one of the op: two zeros if
// there are none, so that each iteration differs.
std::pair<Output, Output> SeedTensors(Graph& graph, std::optional<int64_t> seed);
// The attribute `deterministic`: "true", "false" or "default".
const char* DeterminismAttr(const std::optional<bool>& deterministic);
// Returns the components' shapes with a dimension in front.
std::vector<Shape> BatchedShapes(const std::vector<Shape>& shapes, int64_t batch);
// Returns the value of a literal, or -1.
int64_t LiteralValue(const Ints& number);
// Returns "(int64, string)".
std::string TypesText(const DataTypes& types);
// Returns what the elements of all data sets have in common. Fails the graph with INVALID_ARGUMENT
// and returns nullopt if there are none or if their dtypes differ.
std::optional<ElementSpec> CommonSpec(absl::string_view method,
                                      const std::vector<Dataset>& datasets);
// Return false if one of them is invalid, or if there are none.
bool AllValidOutputs(const Outputs& tensors);
bool AllValid(const std::vector<Dataset>& datasets);
// Returns the data set with TensorFlow's mark that workers do not divide it.
Dataset ReplicateOnSplit(const Dataset& dataset);

// A function in the library of a graph.
struct TracedFunction {
  FunctionRef ref;
  ElementSpec results;  // of a function that returns a data set: of its elements
};
// Calls `build` on the arguments of a new function, and defines the function in the library of
// `graph`. `name`: as in "Dataset_map_lambda", made unique. The arguments are those of `spec` and
// the captured tensors. Fails the graph and returns nullopt if `build` is empty, if its graph has
// an error, or if a result is invalid or belongs to another graph.
std::optional<TracedFunction> TraceFunction(Graph& graph, absl::string_view name,
                                            const ElementSpec& spec, const Outputs& captured,
                                            const ElementFn& build);
std::optional<TracedFunction> TraceDatasetFunction(Graph& graph, absl::string_view name,
                                                   const ElementSpec& spec, const Outputs& captured,
                                                   const DatasetFn& build);
// The same for a function with one result, which must be a scalar of this dtype.
std::optional<TracedFunction> TraceScalarFunction(Graph& graph, absl::string_view name,
                                                  const ElementSpec& spec, const Outputs& captured,
                                                  DataType result, const KeyFn& build);

}  // namespace weir

#endif  // WEIR_OPS_DATA_DATASET_BUILD_INTERNAL_H_
