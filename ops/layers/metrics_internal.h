#ifndef WEIR_OPS_LAYERS_METRICS_INTERNAL_H_
#define WEIR_OPS_LAYERS_METRICS_INTERNAL_H_

#include <functional>
#include <optional>
#include <string>

#include "weir/core/graph/scope.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/layers/metrics.h"
#include "weir/ops/lib/in_scope.h"

// Declarations shared by the sources of the metrics.
namespace weir::metrics {

// The variable scope of a metric: the requested name, or the default name made unique.
class MetricScope {
 public:
  MetricScope(Graph& graph, const std::string& name, absl::string_view default_name);

 private:
  std::optional<VariableScope> scope_;
};

// Returns a local variable initialized to zeros in which a metric accumulates. It is in the
// collection of metric variables and summed over replicas.
Variable MetricVariable(Graph& graph, const Shape& shape, DataType dtype, absl::string_view name);

// A source of a tensor: a variable, which is read again for each use, or a tensor. TensorFlow reads
// a resource variable in the scope of the node that uses it, so the caller of a source opens that
// scope first.
using Source = std::function<Output()>;
inline Source From(const Variable& v) {
  return [v] { return v.value(); };
}
inline Source From(const Output& t) {
  return [t] { return t; };
}

// variable += delta. For a resource variable, each use of the new value is a separate read after
// the write.
struct Update {
  Output value;  // resource variable: the first such read; ref variable: the write
  Source source;
  explicit operator bool() const { return value.valid(); }
};
Update AddTo(const Variable& variable, Output delta, absl::string_view name = {});
// Returns the Update for an existing write that has no read after it.
Update AsUpdate(const Variable& variable, Output write);

// Returns x + y like Python's operator on variables: the left operand is read before the node's
// scope is opened.
Output Plus(const Source& x, const Source& y);

// Returns x / y, where x is read in the scope of the node `name`.
Output Ratio(const Source& x, Output y, absl::string_view name);
// Returns an Identity of the variable's value.
Output ValueOf(const Variable& v);

// Adds the results to their collections and returns them. Returns an empty Metric if one of them is
// invalid.
Metric Finish(const Metric& metric, const MetricOptions& options);

struct MetricInputs {
  Output predictions, labels, weights;
  bool ok = false;
};
// Squeezes last dimensions of 1 (or adds one to the weights) until labels, predictions and weights
// have the same rank. Invalid labels or weights count as absent.
MetricInputs RemoveSqueezable(Output predictions, Output labels,
                              const std::optional<TensorArg>& weights);
// Does the same for a metric of labels and predictions. The result is not ok if one of them is
// invalid.
MetricInputs Prepare(Output labels, Output predictions, const MetricOptions& options);

}  // namespace weir::metrics

#endif  // WEIR_OPS_LAYERS_METRICS_INTERNAL_H_
