#ifndef WEIR_SESSION_PARTIAL_RUN_H_
#define WEIR_SESSION_PARTIAL_RUN_H_

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weir/session/plan.h"

namespace weir {

// One piece of a partial run: a step of its own.
struct Piece {
  PlanRequest request;
  Tensors feeds;  // of the request
  // By fetch asked for: its position among the request's, or -1 for a value that is known already.
  std::vector<int> answers;
  Outputs fetches;         // as asked for
  std::vector<int> nodes;  // of the whole step's plan: what this piece runs
};

// Cuts a step into pieces, as feeds come and fetches are asked for: see partial_run.cc. For one
// thread at a time.
class Pieces {
 public:
  // `whole`: everything that will be fed, fetched and run.
  static absl::StatusOr<Pieces> Make(PlanRequest whole, const Graph& graph);

  // The step to run now. INVALID_ARGUMENT, and nothing has changed, if the arguments are not for
  // this moment.
  absl::StatusOr<Piece> Next(const std::vector<std::pair<Output, Tensor>>& feeds,
                             const Outputs& fetches, const std::vector<Operation>& targets);
  // Takes note of what the piece has given, the values of its request's fetches; returns the values
  // asked for.
  Tensors Finish(const Piece& piece, Tensors values);
  // All feeds and fetches have come.
  bool is_over() const { return fed_.size() == whole_.feeds.size() && !fetches_left(); }

 private:
  enum class State : uint8_t { kWaiting, kInPiece, kDone };

  absl::Status TakeFeeds(const std::vector<std::pair<Output, Tensor>>& feeds);
  absl::StatusOr<std::vector<int>> Roots(const Outputs& fetches,
                                         const std::vector<Operation>& targets) const;
  absl::Status Collect(int root, const Output& asked, std::vector<int>* nodes);
  void Follow(int node, std::vector<int>* stack) const;
  void Describe(const Outputs& fetches, Piece* piece) const;
  bool IsSource(const PlanNode& node) const;
  Output OutputOf(const PlanValue& value) const;
  bool fetches_left() const { return fetched_ < static_cast<int>(whole_.fetches.size()); }

  PlanRequest whole_;
  PlanGraph plan_;
  std::vector<State> states_;              // by node of the plan
  std::vector<std::vector<int>> users_;    // by node: who takes a value of it
  std::vector<std::vector<int>> members_;  // by outermost loop: its nodes
  std::vector<int> outermost_;             // by node: the outermost loop around it; -1 for none
  absl::flat_hash_map<Output, Tensor> fed_;
  absl::flat_hash_map<Output, Tensor> known_;  // values that later pieces need
  absl::flat_hash_map<Output, bool> asked_;    // by fetch: has it come?
  absl::flat_hash_map<const Node*, int> ids_;
  int fetched_ = 0;
};

}  // namespace weir

#endif  // WEIR_SESSION_PARTIAL_RUN_H_
