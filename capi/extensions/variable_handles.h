#ifndef WEIR_CAPI_EXTENSIONS_VARIABLE_HANDLES_H_
#define WEIR_CAPI_EXTENSIONS_VARIABLE_HANDLES_H_

#include <optional>

#include "weir/capi/objects.h"
#include "weir/ops/framework/variable.h"

// Variables as the operations that hold their storage.
namespace weir::capi {

// Converts a handle. INVALID_ARGUMENT for null and for another graph's operation; NOT_FOUND for an
// operation that is no variable of the graph's collections.
absl::StatusOr<Variable> VariableOf(TF_Operation* operation, Graph& graph);
// Converts `count` handles. Null and 0 are none: nullopt.
absl::StatusOr<std::optional<Variables>> VariablesOf(TF_Operation* const* operations, int count,
                                                     Graph& graph);
// Returns the handle; null for an invalid variable.
TF_Operation* HandleOf(const Variable& variable);

}  // namespace weir::capi

#endif  // WEIR_CAPI_EXTENSIONS_VARIABLE_HANDLES_H_
