#include "weir/session/partial_run.h"
#include "weir/session/passes/passes.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"

// Partial runs. TensorFlow starts the whole step at once and lets it wait for its feeds. Here each
// piece is a separate step, prepared and cached like any other: it runs the nodes that the
// requested fetches and targets need and that no earlier piece has run. The cut between the nodes
// of a piece and the remaining nodes determines the values that cross it: they are fetched along
// with the piece, and fed to the later piece that uses them. Nothing is pending between two pieces,
// and an unfinished partial run holds only these values.
//
// A node runs once, whichever piece needs it: two pieces see the same random number. Only nodes
// that produce the same value at any time without running anything (constants, references, handles
// of variables) belong to every piece that needs them, since references cannot be fed. Loops are
// not cut: if a piece needs a node of a loop, it runs all nodes of the loop that the step needs.
// Conditional branches are not cut either: a value that may be dead stays in one piece with its
// users.
namespace weir {

absl::StatusOr<PartialRunSplitter> PartialRunSplitter::Make(PlanRequest whole, const Graph& graph) {
  PartialRunSplitter p;
  p.request_ = std::move(whole);
  WEIR_ASSIGN_OR_RETURN(p.plan_, PruneGraph(p.request_, graph));
  WEIR_RETURN_IF_ERROR(FindLoops(p.plan_));
  AnalyzeDeadness(p.plan_);
  const int count = static_cast<int>(p.plan_.nodes.size());
  p.states_.assign(count, State::kWaiting);
  p.uses_ = PlanUses(p.plan_);
  p.outermost_.assign(count, -1);
  p.members_.resize(p.plan_.loops.size());
  for (int i = 0; i < count; ++i) {
    const PlanNode& n = p.plan_.nodes[i];
    if (n.kind == PlanNode::Kind::kOp) p.ids_[n.node] = i;
    int loop = std::max(n.loop, n.value_loop);
    while (loop >= 0 && p.plan_.loops[loop].parent >= 0) loop = p.plan_.loops[loop].parent;
    p.outermost_[i] = loop;
    if (loop >= 0) p.members_[loop].push_back(i);
  }
  for (const Output& fetch : p.request_.fetches) {
    if (!p.is_fetched_.emplace(fetch, false).second)
      return InvalidArgument("The fetch ", fetch.name(), " is specified more than once.");
  }
  return p;
}

// Returns true for a node without inputs and side effects: every piece that needs it runs it again.
// So is the shared read of a reference, whose users see everything written before them.
bool PartialRunSplitter::IsSource(const PlanNode& n) const {
  if (n.Is("Identity") && n.controls.empty()) {
    const PlanNode& from = plan_.nodes[n.inputs[0].node];
    return from.kind == PlanNode::Kind::kOp && from.inputs.empty() && IsRef(from.type(0));
  }
  if (n.node->num_inputs() > 0 || n.node->num_outputs() == 0) return false;
  return !n.node->op().stateful() || IsRef(n.node->output_type(0)) || n.Is(VariableUse::kDeclares);
}

Output PartialRunSplitter::OutputOf(const PlanValue& value) const {
  const PlanNode& n = plan_.nodes[value.node];
  return n.node->output(n.kind == PlanNode::Kind::kFeed ? n.fed_output : value.output);
}

absl::StatusOr<PartialStep> PartialRunSplitter::Next(
    const std::vector<std::pair<Output, Tensor>>& feeds, const Outputs& fetches,
    const std::vector<Operation>& targets) {
  WEIR_ASSIGN_OR_RETURN(std::vector<int> roots, Roots(fetches, targets));
  const auto fed_before = fed_;
  absl::Status status = AddFeeds(feeds);
  const bool last = fed_.size() == request_.feeds.size() &&
                    num_fetched_ + fetches.size() == request_.fetches.size();
  if (last) roots.insert(roots.end(), plan_.targets.begin(), plan_.targets.end());
  PartialStep piece;
  piece.fetches = fetches;
  for (size_t i = 0; i < roots.size() && status.ok(); ++i) {
    const Output requested = i < fetches.size() ? fetches[i] : plan_.nodes[roots[i]].node->output();
    status = CollectNodes(roots[i], requested, &piece.nodes);
  }
  if (!status.ok()) {
    fed_ = fed_before;
    for (const int n : piece.nodes) states_[n] = State::kWaiting;
    return status;
  }
  for (size_t i = fetches.size(); i < roots.size(); ++i) {
    if (states_[roots[i]] == State::kInPiece)
      piece.request.targets.emplace_back(const_cast<Node*>(plan_.nodes[roots[i]].node));
  }
  FillRequest(fetches, &piece);
  // The nodes are not marked as done until the piece has run.
  for (const int n : piece.nodes) states_[n] = State::kWaiting;
  return piece;
}

absl::Status PartialRunSplitter::AddFeeds(const std::vector<std::pair<Output, Tensor>>& feeds) {
  for (const auto& [to, value] : feeds) {
    if (std::find(request_.feeds.begin(), request_.feeds.end(), to) == request_.feeds.end())
      return InvalidArgument("The feed ", to.name(), " was not specified in partial_run_setup.");
    if (!fed_.emplace(to, value).second)
      return InvalidArgument("The feed ", to.name(), " has already been fed.");
  }
  return absl::OkStatus();
}

// Returns the nodes of the fetches, then those of the targets.
absl::StatusOr<std::vector<int>> PartialRunSplitter::Roots(
    const Outputs& fetches, const std::vector<Operation>& targets) const {
  std::vector<int> roots;
  absl::flat_hash_set<Output> seen;
  for (const Output& fetch : fetches) {
    const auto it = std::find(request_.fetches.begin(), request_.fetches.end(), fetch);
    if (it == request_.fetches.end())
      return InvalidArgument("The fetch ", fetch.name(),
                             " was not specified in partial_run_setup.");
    if (is_fetched_.at(fetch) || !seen.insert(fetch).second)
      return InvalidArgument("The fetch ", fetch.name(), " has already been fetched.");
    roots.push_back(plan_.fetches[it - request_.fetches.begin()].node);
  }
  for (const Operation& target : targets) {
    const auto it = std::find(request_.targets.begin(), request_.targets.end(), target);
    if (it == request_.targets.end()) {
      return InvalidArgument("The target ", target.name(),
                             " was not specified in partial_run_setup.");
    }
    roots.push_back(plan_.targets[it - request_.targets.begin()]);
  }
  return roots;
}

// Returns the other nodes that must run in the same piece as this node and have not run yet.
void PartialRunSplitter::PushRelatedNodes(int node, std::vector<int>* stack) const {
  const PlanNode& n = plan_.nodes[node];
  for (const PlanValue& v : n.inputs) stack->push_back(v.node);
  stack->insert(stack->end(), n.controls.begin(), n.controls.end());
  if (outermost_[node] >= 0) {
    const std::vector<int>& loop = members_[outermost_[node]];
    stack->insert(stack->end(), loop.begin(), loop.end());
  } else if (n.may_be_dead) {
    for (const PlanUse& use : uses_.Of(node)) {
      if (use.is_input()) stack->push_back(use.user);
    }
  }
}

absl::Status PartialRunSplitter::CollectNodes(int root, const Output& requested,
                                              std::vector<int>* nodes) {
  std::vector<int> stack = {root};
  while (!stack.empty()) {
    const int i = stack.back();
    stack.pop_back();
    const PlanNode& n = plan_.nodes[i];
    if (n.kind == PlanNode::Kind::kFeed) {
      if (fed_.contains(OutputOf({i, 0}))) continue;
      return InvalidArgument("Fetch ", requested.name(),
                             " can't be computed from the feeds that have been fed so far.");
    }
    if (states_[i] != State::kWaiting) continue;
    states_[i] = State::kInPiece;
    nodes->push_back(i);
    PushRelatedNodes(i, &stack);
  }
  return absl::OkStatus();
}

// Feeds the values that the piece needs from outside, and fetches the requested values and those
// that cross the cut.
void PartialRunSplitter::FillRequest(const Outputs& fetches, PartialStep* piece) const {
  PlanRequest& request = piece->request;
  absl::flat_hash_set<Output> fed;
  absl::flat_hash_map<Output, int> fetched;
  absl::flat_hash_set<const Node*> over;
  const auto fetch = [&](const Output& output) {
    const auto [it, is_new] = fetched.emplace(output, static_cast<int>(request.fetches.size()));
    if (is_new) request.fetches.push_back(output);
    return it->second;
  };
  std::sort(piece->nodes.begin(), piece->nodes.end());
  for (const Output& requested : fetches)
    piece->fetch_positions.push_back(known_values_.contains(requested) ? -1 : fetch(requested));
  for (const auto& [output, was_fetched] : is_fetched_) {
    const auto it = ids_.find(output.node);
    if (!was_fetched && it != ids_.end() && states_[it->second] == State::kInPiece) fetch(output);
  }
  for (const int i : piece->nodes) {
    const PlanNode& n = plan_.nodes[i];
    for (const PlanValue& v : n.inputs) {
      const Output output = OutputOf(v);
      const bool is_feed = plan_.nodes[v.node].kind == PlanNode::Kind::kFeed;
      if (!is_feed && states_[v.node] != State::kDone) continue;
      if (!fed.insert(output).second) continue;
      request.feeds.push_back(output);
      piece->feeds.push_back(is_feed ? fed_.at(output) : known_values_.at(output));
    }
    for (const Node* control : n.node->control_inputs()) {
      const auto it = ids_.find(control);  // a placeholder that is fed has no inputs
      const bool is_over = it == ids_.end() || states_[it->second] == State::kDone;
      if (is_over && over.insert(control).second) request.done.push_back(control);
    }
    if (n.kind != PlanNode::Kind::kOp || IsSource(n)) continue;
    for (const PlanUse& use : uses_.Of(i)) {
      if (use.is_input() && states_[use.user] == State::kWaiting) fetch(OutputOf({i, use.output}));
    }
  }
}

Tensors PartialRunSplitter::Finish(const PartialStep& piece, Tensors values) {
  for (const int i : piece.nodes) {
    if (!IsSource(plan_.nodes[i])) states_[i] = State::kDone;
  }
  for (size_t i = 0; i < piece.request.fetches.size(); ++i)
    known_values_.emplace(piece.request.fetches[i], values[i]);
  Tensors results;
  for (size_t i = 0; i < piece.fetches.size(); ++i) {
    results.push_back(piece.fetch_positions[i] < 0 ? known_values_.at(piece.fetches[i])
                                                   : values[piece.fetch_positions[i]]);
    is_fetched_[piece.fetches[i]] = true;
  }
  num_fetched_ += static_cast<int>(piece.fetches.size());
  return results;
}

}  // namespace weir
