#ifndef WEIR_SESSION_PARTIAL_RUN_H_
#define WEIR_SESSION_PARTIAL_RUN_H_

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weir/session/plan/plan_environment.h"
#include "weir/session/plan/plan_graph.h"
#include "weir/session/plan/plan_uses.h"

namespace weir {

// One piece of a partial run: a separate step.
struct PartialStep {
  PlanRequest request;
  Tensors feeds;  // one for each feed of the request
  // By requested fetch: its position in the request's fetches, or -1 for a value that is known
  // already.
  std::vector<int> fetch_positions;
  Outputs fetches;         // the requested fetches
  std::vector<int> nodes;  // the nodes of the whole step's plan that this piece runs
};

// Cuts a step into pieces, according to the feeds and fetches of each call: see partial_run.cc. Not
// thread-safe.
class PartialRunSplitter {
 public:
  // `whole`: all feeds, fetches and targets of the partial run.
  static absl::StatusOr<PartialRunSplitter> Make(PlanRequest whole, const Graph& graph);

  // Returns the step to run now. On INVALID_ARGUMENT, if the arguments are not allowed at this
  // point, the state is unchanged.
  absl::StatusOr<PartialStep> Next(const std::vector<std::pair<Output, Tensor>>& feeds,
                                   const Outputs& fetches, const std::vector<Operation>& targets);
  // Records the results of the piece, the values of its request's fetches; returns the requested
  // values.
  Tensors Finish(const PartialStep& piece, Tensors values);
  // True once all feeds have been fed and all fetches fetched.
  bool is_over() const { return fed_.size() == request_.feeds.size() && !fetches_left(); }

 private:
  enum class State : uint8_t { kWaiting, kInPiece, kDone };

  absl::Status AddFeeds(const std::vector<std::pair<Output, Tensor>>& feeds);
  absl::StatusOr<std::vector<int>> Roots(const Outputs& fetches,
                                         const std::vector<Operation>& targets) const;
  absl::Status CollectNodes(int root, const Output& requested, std::vector<int>* nodes);
  void PushRelatedNodes(int node, std::vector<int>* stack) const;
  void FillRequest(const Outputs& fetches, PartialStep* piece) const;
  bool IsSource(const PlanNode& node) const;
  Output OutputOf(const PlanValue& value) const;
  bool fetches_left() const { return num_fetched_ < static_cast<int>(request_.fetches.size()); }

  PlanRequest request_;
  PlanGraph plan_;
  std::vector<State> states_;  // by node of the plan
  PlanUses uses_;
  std::vector<std::vector<int>> members_;  // by outermost loop: its nodes
  std::vector<int> outermost_;             // by node: the outermost loop around it; -1 for none
  absl::flat_hash_map<Output, Tensor> fed_;
  absl::flat_hash_map<Output, Tensor> known_values_;  // values that later pieces use
  absl::flat_hash_map<Output, bool> is_fetched_;      // by fetch: whether it has been fetched
  absl::flat_hash_map<const Node*, int> ids_;
  int num_fetched_ = 0;
};

}  // namespace weir

#endif  // WEIR_SESSION_PARTIAL_RUN_H_
