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

// Checks a value that is fed for a tensor: its type, and for a placeholder its shape, which
// declares what may be fed. (The shape of another tensor was inferred from inputs that the feed
// replaces, and TensorFlow's runtime accepts feeds of other shapes.) Return INVALID_ARGUMENT.
absl::Status CheckFeedType(const Output& to, const Tensor& value);
absl::Status CheckFeedShape(const Output& to, const Tensor& value);
// Both.
absl::Status CheckFeed(const Output& to, const Tensor& value);
// Also checks that there is one value for each feed.
absl::Status CheckFeeds(const Outputs& feeds, absl::Span<const Tensor> values);
absl::Status CheckFeedCount(const Outputs& feeds, absl::Span<const Tensor> values);

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_PLAN_REQUEST_H_
