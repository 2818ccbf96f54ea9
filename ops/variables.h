#ifndef WEIR_OPS_VARIABLES_H_
#define WEIR_OPS_VARIABLES_H_

#include <optional>
#include <vector>

#include "weir/ops/collections.h"
#include "weir/ops/initializers.h"
#include "weir/ops/variable.h"
#include "weir/ops/variable_scope.h"

// Variables: making and sharing them (variable.h, variable_scope.h), and the lists and ops over
// many of them (here).
namespace weir {

// The variables of a collection whose names match `scope` as a regular expression anchored at the
// start; all by default.
Variables VariablesIn(const Graph& graph, absl::string_view collection,
                      absl::string_view scope = {});
Variables GlobalVariables(const Graph& graph, absl::string_view scope = {});
Variables LocalVariables(const Graph& graph, absl::string_view scope = {});
Variables TrainableVariables(const Graph& graph, absl::string_view scope = {});
Variables ModelVariables(const Graph& graph, absl::string_view scope = {});
Variables MovingAverageVariables(const Graph& graph, absl::string_view scope = {});
Variables MetricVariables(const Graph& graph, absl::string_view scope = {});
// The variable of any variable collection (or of GetVariable's store) whose storage node this is;
// invalid if there is none.
Variable FindVariable(Graph& graph, const Node* storage);

// A NoOp that runs all initializers; what one of them reads of another variable is initialized
// first when both run in one step. An empty list gives an op too.
Operation VariablesInitializer(Graph& graph, const Variables& variables,
                               absl::string_view name = "init");
Operation GlobalVariablesInitializer(Graph& graph);
Operation LocalVariablesInitializer(Graph& graph);

// A bool scalar.
Output IsVariableInitialized(const Variable& variable);
// A string vector: the op names of the variables without a value, in list order. Default list:
// global, then local.
Output ReportUninitializedVariables(Graph& graph, const std::optional<Variables>& variables = {},
                                    absl::string_view name = "report_uninitialized_variables");
// An op that fails with FAILED_PRECONDITION if one of them has no value. Invalid if there are none.
Operation AssertVariablesInitialized(Graph& graph, const std::optional<Variables>& variables = {});

// The step counter: int64 scalar "global_step", not trainable, in collections "variables" and
// "global_step". Making it twice is ALREADY_EXISTS.
Variable CreateGlobalStep(Graph& graph);
// Invalid if there is none.
Variable GetGlobalStep(Graph& graph);
Variable GetOrCreateGlobalStep(Graph& graph);

}  // namespace weir

#endif  // WEIR_OPS_VARIABLES_H_
