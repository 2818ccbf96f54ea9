#ifndef WEIR_SESSION_PLAN_PLAN_REQUEST_H_
#define WEIR_SESSION_PLAN_PLAN_REQUEST_H_

#include <string>
#include <vector>

#include "weir/session/plan/plan_environment.h"

namespace weir {

// Looks up what a step is to run by names: tensors "x:0" (or "x"), and nodes. NOT_FOUND for names
// that are not in the graph.
absl::StatusOr<PlanRequest> FindByName(const Graph& graph, const std::vector<std::string>& feeds,
                                       const std::vector<std::string>& fetches,
                                       const std::vector<std::string>& targets,
                                       const NamedConnections& connections = {});

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_PLAN_REQUEST_H_
