#ifndef WEIR_OPS_FRAMEWORK_VARIABLES_H_
#define WEIR_OPS_FRAMEWORK_VARIABLES_H_

#include <optional>
#include <vector>

#include "weir/core/tensor/api.h"
#include "weir/ops/framework/initializers.h"
#include "weir/ops/framework/variable.h"
#include "weir/ops/framework/variable_scope.h"
#include "weir/ops/lib/collections.h"

// Variables: creation and sharing (variable.h, variable_scope.h), and the lists and ops over
// several variables (here).
namespace WEIR_API weir {

// Returns the variables of a collection whose names match the regular expression `scope`, anchored
// at the start. Default: all.
Variables VariablesIn(const Graph& graph, absl::string_view collection,
                      absl::string_view scope = {});
Variables GlobalVariables(const Graph& graph, absl::string_view scope = {});
Variables LocalVariables(const Graph& graph, absl::string_view scope = {});
Variables TrainableVariables(const Graph& graph, absl::string_view scope = {});
Variables ModelVariables(const Graph& graph, absl::string_view scope = {});
Variables MovingAverageVariables(const Graph& graph, absl::string_view scope = {});
Variables MetricVariables(const Graph& graph, absl::string_view scope = {});
// Returns the variable of any variable collection (or of GetVariable's store) whose storage node is
// `storage`; invalid if there is none.
Variable FindVariable(Graph& graph, const Node* storage);

// Returns a NoOp that runs all initializers. If an initializer reads another variable, that
// variable is initialized first when both run in one step. An empty list also returns an op.
Operation VariablesInitializer(Graph& graph, const Variables& variables,
                               absl::string_view name = "init");
Operation GlobalVariablesInitializer(Graph& graph);
Operation LocalVariablesInitializer(Graph& graph);

// Returns a bool scalar.
Output IsVariableInitialized(const Variable& variable);
// Returns a string vector: the op names of the uninitialized variables, in list order. Default
// list: global variables, followed by local ones.
Output ReportUninitializedVariables(Graph& graph, const std::optional<Variables>& variables = {},
                                    absl::string_view name = "report_uninitialized_variables");
// Returns an op that fails with FAILED_PRECONDITION if one of the variables is uninitialized.
// Invalid if there are no variables.
Operation AssertVariablesInitialized(Graph& graph, const std::optional<Variables>& variables = {});

// Creates the step counter: the int64 scalar "global_step", not trainable, in the collections
// "variables" and "global_step". ALREADY_EXISTS if it exists.
Variable CreateGlobalStep(Graph& graph);
// Returns the step counter, or an invalid variable if there is none.
Variable GetGlobalStep(Graph& graph);
Variable GetOrCreateGlobalStep(Graph& graph);

}  // namespace weir

#endif  // WEIR_OPS_FRAMEWORK_VARIABLES_H_
