#ifndef WEIR_CAPI_EXTENSIONS_OPTIMIZER_TEXT_H_
#define WEIR_CAPI_EXTENSIONS_OPTIMIZER_TEXT_H_

#include <memory>
#include <optional>

#include "weir/core/graph/graph.h"
#include "weir/ops/lib/literal.h"
#include "weir/ops/train/optimizer.h"

// Optimizers by name, with hyperparameters as text.
namespace weir::capi {

struct NamedOptimizer {
  std::unique_ptr<Optimizer> optimizer;
  std::optional<TensorArg> clip_norm;  // of all gradients together; unset: they are not clipped
};

// Returns the optimizer that weir_new_optimizer describes. `hyperparameters` may be null; tensors
// that it names are those of the graph. NOT_FOUND for an unknown optimizer, with those that exist,
// and for a tensor; INVALID_ARGUMENT for a hyperparameter that is wrong or missing.
absl::StatusOr<NamedOptimizer> MakeOptimizer(absl::string_view name, const char* hyperparameters,
                                             const Graph& graph);

}  // namespace weir::capi

#endif  // WEIR_CAPI_EXTENSIONS_OPTIMIZER_TEXT_H_
