#ifndef WEIR_OPS_LAYERS_LAYERS_INTERNAL_H_
#define WEIR_OPS_LAYERS_LAYERS_INTERNAL_H_

#include <optional>
#include <string>
#include <vector>

#include "weir/core/graph/scope.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/layers/layers.h"
#include "weir/ops/lib/in_scope.h"

// Helpers shared by the layers.
namespace weir::layers {

struct WeightOptions {
  Initializer initializer = {};
  Regularizer regularizer = {};
  Constraint constraint = {};
  bool trainable = true;
  VariableSynchronization synchronization = VariableSynchronization::kAuto;
  VariableAggregation aggregation = VariableAggregation::kNone;
  bool whole = false;  // ignores the scope's partitioner
};

// A layer under construction: its variable scope and the name scope of its nodes. The name of the
// variable scope is the given one, or the first unused one of "dense", "dense_1", ...
class Layer {
 public:
  Layer(Graph& graph, const std::string& name, absl::string_view default_name,
        std::optional<Reuse> reuse = {});

  Graph& graph() const { return graph_; }
  // Returns the variable "<layer>/<name>", new or shared. A new variable also gets its
  // regularization loss.
  Variable AddWeight(absl::string_view name, const Shape& shape, DataType dtype,
                     const WeightOptions& options);
  // Fails the graph with INVALID_ARGUMENT, prefixed with the layer's name, and returns an invalid
  // Output.
  Output Fail(absl::string_view why) const;
  // Returns outputs + bias. The bias is read in the node's scope. `format` is that of BiasAdd.
  Output AddBias(const Output& outputs, const Variable& bias, absl::string_view format) const;
  // Applies the activation and adds the regularization loss of the outputs.
  Output Finish(Output outputs, const Activation& activation,
                const ActivityRegularizer& regularizer = {}) const;

 private:
  Graph& graph_;
  VariableScopeRef captured_;
  std::optional<VariableScope> scope_;
  std::optional<NameScope> names_;
};

// The positions of the dimensions in a layer's inputs. ParseLayout fails `layer` with
// INVALID_ARGUMENT for an invalid data format or inputs of another rank.
struct Layout {
  int rank = 0;  // of the inputs
  int batch = 0, channel = 0, spatial = 0;
  bool channels_first() const { return channel == 1; }
  int num_spatial() const { return rank - 2; }
  std::string format;  // "NHWC", "NCHW", "NDHWC", "NCDHW"
};
std::optional<Layout> ParseLayout(const Layer& layer, const Output& inputs,
                                  absl::string_view data_format, int num_spatial);
// Returns "VALID" or "SAME".
std::optional<std::string> ParsePadding(const Layer& layer, const std::string& padding);
// Returns a positive number for each dimension.
std::optional<std::vector<int64_t>> ParseExtents(const Layer& layer, const Ints& extents,
                                                 int num_spatial, absl::string_view name);
// Returns `extents` at the spatial dimensions and ones elsewhere.
std::vector<int64_t> WithOnes(const Layout& layout, const std::vector<int64_t>& extents);

}  // namespace weir::layers

#endif  // WEIR_OPS_LAYERS_LAYERS_INTERNAL_H_
