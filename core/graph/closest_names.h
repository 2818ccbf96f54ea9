#ifndef WEIR_CORE_GRAPH_CLOSEST_NAMES_H_
#define WEIR_CORE_GRAPH_CLOSEST_NAMES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weir {

// Returns the candidates that differ least from `name`, for "did you mean": at most three, closest
// first, and none if all of them are far away. Case does not count, nor do scopes before a name:
// "net/w" is close to "model/net/w". Names of more than 100 letters are compared by scopes only.
std::vector<std::string> ClosestNames(absl::string_view name,
                                      const std::vector<std::string>& candidates);

}  // namespace weir

#endif  // WEIR_CORE_GRAPH_CLOSEST_NAMES_H_
