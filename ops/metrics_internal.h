#ifndef WEIR_OPS_METRICS_INTERNAL_H_
#define WEIR_OPS_METRICS_INTERNAL_H_

#include <functional>
#include <optional>
#include <string>

#include "weir/core/scope.h"
#include "weir/ops/in_scope.h"
#include "weir/ops/metrics.h"
#include "weir/ops/variables.h"

// What the sources of the metrics share.
namespace weir::metrics {

// The variable scope of a metric: the name asked for, or the default one made unique.
class MetricScope {
 public:
  MetricScope(Graph& graph, const std::string& name, absl::string_view default_name);

 private:
  std::optional<VariableScope> scope_;
};

// Zeros that a metric adds to: local, in the collection of metric variables, summed over replicas.
Variable MetricVariable(Graph& graph, const Shape& shape, DataType dtype, absl::string_view name);

// Where a tensor comes from: a variable, read anew for each use, or a tensor. TensorFlow reads a
// resource variable in the scope of the node that uses it, so whoever calls a source has opened
// that scope.
using Source = std::function<Output()>;
inline Source From(const Variable& v) {
  return [v] { return v.value(); };
}
inline Source From(const Output& t) {
  return [t] { return t; };
}

// variable += delta. For a resource variable every use of the new value is a read of its own after
// the write.
struct Update {
  Output value;  // the first such read; of a reference variable, the write
  Source source;
  explicit operator bool() const { return value.valid(); }
};
Update AddTo(const Variable& variable, Output delta, absl::string_view name = {});
// The same for a write that was made without a read after it.
Update Written(const Variable& variable, Output write);

// x + y as Python's operator on variables: the left one is read before the node's scope opens.
Output Plus(const Source& x, const Source& y);

// x / y, x being read in the scope of the node `name`.
Output Ratio(const Source& x, Output y, absl::string_view name);
// An Identity of the variable's value.
Output ValueOf(const Variable& v);

// Puts the results into their collections and returns them; nothing if one is invalid.
Metric Finish(const Metric& metric, const MetricOptions& options);

struct MetricInputs {
  Output predictions, labels, weights;
  bool ok = false;
};
// Takes last dimensions of 1 off (or adds one to the weights) until labels, predictions and weights
// have one rank. Invalid labels or weights are none.
MetricInputs RemoveSqueezable(Output predictions, Output labels,
                              const std::optional<TensorArg>& weights);
// The same for a metric of labels and predictions: nothing is ok if one of these is invalid.
MetricInputs Prepare(Output labels, Output predictions, const MetricOptions& options);

}  // namespace weir::metrics

#endif  // WEIR_OPS_METRICS_INTERNAL_H_
