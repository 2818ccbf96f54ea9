#ifndef WEIR_OPS_LAYERS_INTERNAL_H_
#define WEIR_OPS_LAYERS_INTERNAL_H_

#include <optional>
#include <string>
#include <vector>

#include "weir/core/scope.h"
#include "weir/ops/in_scope.h"
#include "weir/ops/layers.h"
#include "weir/ops/variables.h"

// What the sources of the layers share.
namespace weir::layers {

struct WeightOptions {
  Initializer initializer = {};
  Regularizer regularizer = {};
  Constraint constraint = {};
  bool trainable = true;
  VariableSynchronization synchronization = VariableSynchronization::kAuto;
  VariableAggregation aggregation = VariableAggregation::kNone;
  bool whole = false;  // whatever the scope's partitioner
};

// A layer under construction: its variable scope, whose name is that asked for or the first of
// "dense", "dense_1", ... not used yet, and the name scope of its nodes.
class Layer {
 public:
  Layer(Graph& graph, const std::string& name, absl::string_view default_name,
        std::optional<Reuse> reuse = {});

  Graph& graph() const { return graph_; }
  // "<layer>/<name>", made or shared; where it is made, its regularization loss as well.
  Variable AddWeight(absl::string_view name, const Shape& shape, DataType dtype,
                     const WeightOptions& options);
  // INVALID_ARGUMENT on the graph, with the layer's name in front; an invalid Output.
  Output Fail(absl::string_view why) const;
  // outputs + bias, the bias being read in the node's scope. `format` as BiasAdd has it.
  Output AddBias(const Output& outputs, const Variable& bias, absl::string_view format) const;
  // The last steps of a layer: activation, and the loss of its outputs.
  Output Finish(Output outputs, const Activation& activation,
                const ActivityRegularizer& regularizer = {}) const;

 private:
  Graph& graph_;
  VariableScopeRef captured_;
  std::optional<VariableScope> scope_;
  std::optional<NameScope> names_;
};

// Where the dimensions of a layer's inputs lie. INVALID_ARGUMENT through `layer` for what is no
// data format, and inputs of another rank.
struct Layout {
  int rank = 0;  // of the inputs
  int batch = 0, channel = 0, spatial = 0;
  bool channels_first() const { return channel == 1; }
  int num_spatial() const { return rank - 2; }
  std::string format;  // "NHWC", "NCHW", "NDHWC", "NCDHW"
};
std::optional<Layout> ParseLayout(const Layer& layer, const Output& inputs,
                                  absl::string_view data_format, int num_spatial);
// "VALID" or "SAME".
std::optional<std::string> ParsePadding(const Layer& layer, const std::string& padding);
// A positive number for each dimension.
std::optional<std::vector<int64_t>> ParseExtents(const Layer& layer, const Ints& extents,
                                                 int num_spatial, absl::string_view name);
// `extents` at the spatial dimensions, ones elsewhere.
std::vector<int64_t> WithOnes(const Layout& layout, const std::vector<int64_t>& extents);

}  // namespace weir::layers

#endif  // WEIR_OPS_LAYERS_INTERNAL_H_
