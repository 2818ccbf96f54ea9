#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "weir/session/passes/passes.h"

// Pruning: finds the nodes that a step needs. The pass walks backward from fetches and targets,
// along data and control edges, and stops at fed tensors. The walk is a depth-first search that
// appends a node once everything it depends on has been appended (postorder), so the nodes come out
// in topological order. It keeps an explicit stack: graphs are deep, and may be hostile.
//
// A cycle can only be a loop of v1 control flow, through a NextIteration; import rejects all
// others. The walk does not follow the edge out of a NextIteration: a kCarry replaces it, and the
// NextIteration itself is visited after the walk.
namespace weir {

namespace {

class Pruner {
 public:
  Pruner(const PlanRequest& request, const Graph& graph) : request_(request), graph_(graph) {}

  absl::StatusOr<PlanGraph> Run() {
    WEIR_RETURN_IF_ERROR(CheckRequest());
    done_.insert(request_.done.begin(), request_.done.end());
    for (size_t i = 0; i < request_.feeds.size(); ++i) {
      if (!feeds_.emplace(request_.feeds[i], -1).second) {
        return InvalidArgument("Tensor '", request_.feeds[i].name(), "' is fed more than once");
      }
    }
    WEIR_RETURN_IF_ERROR(Connect());
    for (const Output& fetch : request_.fetches) {
      if (feeds_.contains(fetch)) {
        return InvalidArgument("Tensor '", fetch.name(),
                               "' is both fed and fetched: its value would be the fed one");
      }
      WEIR_RETURN_IF_ERROR(Visit(fetch.node));
    }
    for (const Operation& target : request_.targets) WEIR_RETURN_IF_ERROR(Visit(target.node));
    for (size_t i = 0; i < next_iterations_.size(); ++i)  // visiting one may append more
      WEIR_RETURN_IF_ERROR(Visit(next_iterations_[i]));
    plan_.nodes.reserve(order_.size() + feeds_.size() + next_iterations_.size());
    for (const Node* node : order_) Add(node);
    for (const Output& fetch : request_.fetches)
      plan_.fetches.push_back({ids_[fetch.node->id()], fetch.index});
    for (const Operation& target : request_.targets)
      plan_.targets.push_back(ids_[target.node->id()]);
    for (const Node* next : next_iterations_)
      plan_.carries.push_back({carries_[next], {ids_[next->id()], 0}});
    for (const Output& feed : request_.feeds) {
      const int id = feeds_[feed];
      plan_.feeds.push_back(PlanValue{id, 0});
    }
    return std::move(plan_);
  }

 private:
  absl::Status CheckRequest() const {
    const auto check = [&](const Node* node, absl::string_view what) {
      if (node == nullptr)
        return InvalidArgument("A ", what, " of the step is not a valid element of a graph");
      if (&node->graph() != &graph_) {
        return InvalidArgument(
            "The ", what, " '", node->name(),
            "' is not an element of this graph: it belongs to another graph than "
            "the session's");
      }
      return absl::OkStatus();
    };
    const auto check_output = [&](const Output& o, absl::string_view what) -> absl::Status {
      WEIR_RETURN_IF_ERROR(check(o.node, what));
      return o.CheckIndex();
    };
    for (const Output& o : request_.feeds) WEIR_RETURN_IF_ERROR(check_output(o, "feed"));
    for (const Output& o : request_.fetches) WEIR_RETURN_IF_ERROR(check_output(o, "fetch"));
    for (const Operation& o : request_.targets) WEIR_RETURN_IF_ERROR(check(o.node, "target"));
    for (const auto& [from, to] : request_.connections) {
      WEIR_RETURN_IF_ERROR(check_output(from, "start of a connection"));
      WEIR_RETURN_IF_ERROR(check_output(to, "end of a connection"));
    }
    return absl::OkStatus();
  }

  absl::Status Connect() {
    for (const auto& [from, to] : request_.connections) {
      // Users of `to` may be planned for its shape, so the shape must be certain.
      const absl::StatusOr<Shape> merged = from.shape().MergeWith(to.shape());
      if (from.dtype() != to.dtype() || !merged.ok() || *merged != from.shape()) {
        return InvalidArgument("Tensor '", from.name(), "', ", DataTypeName(from.dtype()),
                               " of shape ", from.shape().ToString(), ", cannot be connected to '",
                               to.name(), "', ", DataTypeName(to.dtype()), " of shape ",
                               to.shape().ToString());
      }
      const bool is_fetched =
          std::find(request_.fetches.begin(), request_.fetches.end(), to) != request_.fetches.end();
      if (is_fetched || feeds_.contains(to) || !sources_.emplace(to, from).second) {
        return InvalidArgument("Tensor '", to.name(), "' is connected to '", from.name(),
                               "' and also fed, fetched or connected");
      }
    }
    return absl::OkStatus();
  }

  // Returns the tensor that replaces `input` of the graph in this step.
  const Output& ResolveConnection(const Output& input) const {
    if (sources_.empty()) return input;
    const auto it = sources_.find(input);
    return it == sources_.end() ? input : it->second;
  }

  int FeedNode(const Output& value) {
    int& id = feeds_[value];
    if (id < 0) {
      id = static_cast<int>(plan_.nodes.size());
      PlanNode node;
      node.kind = PlanNode::Kind::kFeed;
      node.node = value.node;
      node.fed_output = value.index;
      node.shapes = {value.shape()};
      plan_.nodes.push_back(std::move(node));
    }
    return id;
  }

  // A control edge from a placeholder, or from a function's argument, waits for its feed, which is
  // always available. As in TensorFlow, any other op runs for its control successors, fed or not.
  bool IsFedPlaceholder(const Node& node) const {
    if (feeds_.empty() && sources_.empty()) return false;
    return (node.op().traits().placeholder || node.op_name() == "_Arg") &&
           (feeds_.contains(node.output(0)) || sources_.contains(node.output(0)));
  }

  // Returns true for a control input that need not be waited for.
  bool IsSatisfied(const Node& control) const {
    return IsFedPlaceholder(control) || (!done_.empty() && done_.contains(&control));
  }

  // States of a node without a position in the plan: not visited, on the stack, appended to
  // `order_`.
  static constexpr int kUnvisited = -1, kOnStack = -2, kVisited = -3;

  // A node on the stack, and the index of its next dependency: inputs first, then controls.
  struct Entry {
    const Node* node;
    int next;
  };

  static bool IsNextIteration(const Node& node) {
    return node.op().traits().control_flow == ControlFlow::kNextIteration;
  }

  void AddCarry(const Node* next) {
    if (carries_.try_emplace(next, -1).second) next_iterations_.push_back(next);
  }

  // Returns the node that stands for the value of a NextIteration.
  int CarryNode(const Node& next) {
    int& id = carries_[&next];
    if (id < 0) {
      id = static_cast<int>(plan_.nodes.size());
      PlanNode node;
      node.kind = PlanNode::Kind::kCarry;
      node.node = &next;
      node.shapes = {next.output_shape(0)};
      plan_.nodes.push_back(std::move(node));
    }
    return id;
  }

  absl::Status Visit(const Node* root) {
    if (ids_.empty()) ids_.resize(graph_.num_nodes(), kUnvisited);
    if (ids_[root->id()] != kUnvisited) return absl::OkStatus();
    std::vector<Entry> stack = {{root, 0}};
    ids_[root->id()] = kOnStack;
    while (!stack.empty()) {
      Entry& top = stack.back();
      const Node* node = top.node;
      const int num_inputs = node->num_inputs();
      const int total = num_inputs + static_cast<int>(node->control_inputs().size());
      if (top.next == total) {
        ids_[node->id()] = kVisited;
        order_.push_back(node);
        stack.pop_back();
        continue;
      }
      const int i = top.next++;
      const Output* input = i < num_inputs ? &ResolveConnection(node->input(i)) : nullptr;
      const Node* needed = input != nullptr ? input->node : node->control_inputs()[i - num_inputs];
      if (input != nullptr ? feeds_.contains(*input) : IsSatisfied(*needed)) continue;
      if (input != nullptr && IsNextIteration(*needed)) {
        AddCarry(needed);
        continue;
      }
      int& id = ids_[needed->id()];
      if (id == kOnStack) {
        return InvalidArgument("graph has a cycle through nodes ", node->Label(), " and ",
                               needed->Label());
      }
      if (id == kUnvisited) {
        id = kOnStack;
        stack.push_back({needed, 0});
      }
    }
    return absl::OkStatus();
  }

  void Add(const Node* node) {
    PlanNode p;
    p.node = node;
    for (const Output& input : node->inputs()) {
      const Output& in = ResolveConnection(input);
      p.inputs.push_back(feeds_.contains(in)         ? PlanValue{FeedNode(in), 0}
                         : IsNextIteration(*in.node) ? PlanValue{CarryNode(*in.node), 0}
                                                     : PlanValue{ids_[in.node->id()], in.index});
    }
    for (const Node* control : node->control_inputs()) {
      if (!IsSatisfied(*control)) p.controls.push_back(ids_[control->id()]);
    }
    ids_[node->id()] = static_cast<int>(plan_.nodes.size());
    plan_.nodes.push_back(std::move(p));
  }

  const PlanRequest& request_;
  const Graph& graph_;
  PlanGraph plan_;
  std::vector<int> ids_;            // by node id: position in the plan
  std::vector<const Node*> order_;  // the needed nodes, in postorder
  absl::flat_hash_map<Output, int> feeds_;
  absl::flat_hash_map<Output, Output> sources_;  // by the end of a connection: its start
  absl::flat_hash_set<const Node*> done_;
  absl::flat_hash_map<const Node*, int> carries_;  // by NextIteration
  std::vector<const Node*> next_iterations_;       // the same, in order of discovery
};

}  // namespace

absl::StatusOr<PlanGraph> PruneGraph(const PlanRequest& request, const Graph& graph) {
  return Pruner(request, graph).Run();
}

absl::Status Prune(PlanGraph& plan, const PassContext& context) {
  WEIR_ASSIGN_OR_RETURN(plan, PruneGraph(*context.request, context.env.graph));
  plan.changes = {.added = plan.NumNodes()};
  return absl::OkStatus();
}

}  // namespace weir
