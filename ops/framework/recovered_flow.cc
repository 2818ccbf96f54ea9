#include "weir/ops/framework/recovered_flow.h"

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/ops/framework/flow_context.h"

namespace weir {

// A graph from a file does not record its branches and loops, but they can be recovered from its
// nodes, visited in topological order (without the edges from NextIterations):
//
//   * An Enter belongs to the loop of its frame name, which is nested in the context of the Enter's
//   input.
//   * The output of an Exit is in the context around its loop.
//   * A Switch that is not controlled by a LoopCond forms two branches, identified by the predicate
//   (traced through Identities, since TensorFlow's Cond has one of its own) and the side.
//   * The output of a Merge is in the context around its inputs' branches, or in the loop if one of
//   its inputs is an Enter of it.
//   * Any other node belongs to the innermost context that one of its data or control inputs is in.
//
// A Switch with both outputs in use belongs to the context around the branches, so that its
// gradient is that of a stand-alone Switch.
namespace {

bool IsOp(const Node* node, absl::string_view op) {
  const std::string& name = node->op_name();
  return name == op || (name.size() == op.size() + 3 && name.compare(0, 3, "Ref") == 0 &&
                        name.compare(3, std::string::npos, op.data(), op.size()) == 0);
}

class FlowFinder {
 public:
  explicit FlowFinder(Graph& graph) : graph_(graph), stack_(FlowStack::Of(graph)) {}

  void Run() {
    FindUsedSides();
    for (Node* node : TopologicalOrder()) {
      if (stack_.ContextOf(node) == nullptr) Visit(node);
    }
  }

 private:
  static bool IsBackEdge(const Node* node, const Node* input) {
    return IsOp(node, "Merge") && IsOp(input, "NextIteration");
  }

  void FindUsedSides() {
    for (const auto& node : graph_.nodes()) {
      for (const Output& in : node->inputs()) {
        if (IsOp(in.node, "Switch")) used_sides_[in.node] |= 1 << in.index;
      }
    }
  }

  // Returns the nodes in topological order. Nodes on other cycles are left out.
  std::vector<Node*> TopologicalOrder() const {
    std::vector<int> waits(graph_.num_nodes(), 0);
    std::vector<std::vector<Node*>> users(graph_.num_nodes());
    for (const auto& node : graph_.nodes()) {
      const auto wait = [&](const Node* input) {
        ++waits[node->id()];
        users[input->id()].push_back(node.get());
      };
      for (const Output& in : node->inputs()) {
        if (!IsBackEdge(node.get(), in.node)) wait(in.node);
      }
      for (const Node* control : node->control_inputs()) wait(control);
    }
    std::vector<Node*> order;
    for (const auto& node : graph_.nodes()) {
      if (waits[node->id()] == 0) order.push_back(node.get());
    }
    for (size_t i = 0; i < order.size(); ++i) {
      for (Node* user : users[order[i]->id()]) {
        if (--waits[user->id()] == 0) order.push_back(user);
      }
    }
    return order;
  }

  static int Depth(const FlowContext* context) {
    int depth = 0;
    for (; context != nullptr; context = context->outer) ++depth;
    return depth;
  }

  FlowContext* ContextOf(const Output& value) const {
    const auto it = sides_.find({value.node, value.index});
    return it != sides_.end() ? it->second : stack_.OutputContextOf(value.node);
  }

  // Returns the innermost context of the inputs.
  FlowContext* InnermostContext(const Node* node) const {
    FlowContext* innermost = nullptr;
    const auto consider = [&innermost](FlowContext* context) {
      if (Depth(context) > Depth(innermost)) innermost = context;
    };
    for (const Output& in : node->inputs()) {
      if (!IsBackEdge(node, in.node)) consider(ContextOf(in));
    }
    for (const Node* control : node->control_inputs()) consider(stack_.OutputContextOf(control));
    return innermost;
  }

  FlowContext* Make(FlowContext::Kind kind, FlowContext* outer) {
    FlowContext* const context = stack_.Make(kind);
    context->outer = outer;
    return context;
  }

  FlowContext* Branch(FlowContext* outer, const Output& pred, int side) {
    Output decides = pred;
    while (decides.node->op_name() == "Identity") decides = decides.node->input(0);
    FlowContext*& branch = branches_[{outer, decides.node, decides.index, side}];
    if (branch == nullptr) {
      branch = Make(FlowContext::Kind::kBranch, outer);
      branch->pred = pred;
      branch->side = side;
    }
    return branch;
  }

  void VisitSwitch(Node* node, FlowContext* around) {
    if (IsOp(node->input(1).node, "LoopCond")) return Assign(node, around);
    FlowContext* branch[2];
    for (const int side : {0, 1}) {
      branch[side] = Branch(around, node->input(1), side);
      sides_[{node, side}] = branch[side];
    }
    const int used = used_sides_[node];
    Assign(node, used == 1 ? branch[0] : used == 2 ? branch[1] : around);
  }

  void VisitEnter(Node* node, FlowContext* around) {
    FlowContext*& loop = loops_[node->attr<std::string>("frame_name")];
    if (loop == nullptr) {
      loop = Make(FlowContext::Kind::kLoop, around);
      loop->frame_name = node->attr<std::string>("frame_name");
      loop->parallel_iterations = node->attr<int64_t>("parallel_iterations");
    } else if (Depth(around) > Depth(loop->outer)) {
      loop->outer = around;
    }
    if (!node->attr<bool>("is_constant")) loop->enters.push_back(node->output());
    Assign(node, loop);
  }

  // Finds the first node that runs whenever a branch is taken, or in every iteration.
  void FindPivot(Node* node, FlowContext* context) {
    if (context == nullptr || context->pivot != nullptr || node->op_name() != "Identity") return;
    const Node* const input = node->input(0).node;
    const bool of_branch = context->kind == FlowContext::Kind::kBranch;
    if (IsOp(input, "Switch") && (of_branch || node->input(0).index == 1)) context->pivot = node;
  }

  void Visit(Node* node) {
    FlowContext* const around = InnermostContext(node);
    if (IsOp(node, "Switch")) return VisitSwitch(node, around);
    if (IsOp(node, "Enter")) return VisitEnter(node, around);
    if (IsOp(node, "Merge") && around != nullptr && around->kind == FlowContext::Kind::kBranch)
      return Assign(node, around->outer);
    if (around == nullptr) return;
    if (IsOp(node, "LoopCond")) around->condition = node->output();
    if (IsOp(node, "Exit")) around->exits.push_back(node->output());
    FindPivot(node, around);
    Assign(node, around);
  }

  void Assign(const Node* node, FlowContext* context) {
    if (context != nullptr) stack_.Assign(node, context);
  }

  Graph& graph_;
  FlowStack& stack_;
  absl::flat_hash_map<const Node*, int> used_sides_;
  std::map<std::pair<const Node*, int>, FlowContext*> sides_;
  std::map<std::tuple<FlowContext*, const Node*, int, int>, FlowContext*> branches_;
  std::map<std::string, FlowContext*> loops_;
};

}  // namespace

void RecoverFlow(Graph& graph) { FlowFinder(graph).Run(); }

}  // namespace weir
