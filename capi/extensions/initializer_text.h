#ifndef WEIR_CAPI_EXTENSIONS_INITIALIZER_TEXT_H_
#define WEIR_CAPI_EXTENSIONS_INITIALIZER_TEXT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weir/ops/framework/initializers.h"

// Initializers as text.
namespace weir::capi {

// Returns the initializer that a text describes: its name and arguments, "constant value=0.5", as
// weir_new_variable takes them. NOT_FOUND for another name, with those that exist.
absl::StatusOr<Initializer> ParseInitializer(absl::string_view text);

}  // namespace weir::capi

#endif  // WEIR_CAPI_EXTENSIONS_INITIALIZER_TEXT_H_
