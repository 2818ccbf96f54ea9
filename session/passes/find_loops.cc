#include <algorithm>
#include <map>

#include "weir/session/passes/passes.h"

// Assigns each node to its loop. V1 control flow has no explicit loops, only nodes that move values
// between frames: Enter moves one into the frame it names (inside the frame of its input), Exit
// moves one out again, and all other nodes run in the frame of their inputs. So the frames follow
// from the edges, and an edge that joins two frames without an Enter or an Exit between them is an
// error. A frame and everything in it is reached through its Enters alone, which makes it one unit
// of the order around it (order_nodes.cc). (structure_loops.cc removes Enters once the loops are
// known.)
//
// The value of a NextIteration is in the loop of its users, but is visited before them: such values
// get their loop as soon as another input of a user has one.
namespace weir {

namespace {

constexpr int kUnknown = -2;
constexpr int kMaxDepth =
    100;  // loop nesting levels: each is a level of recursion in order_nodes.cc

class LoopFinder {
 public:
  explicit LoopFinder(PlanGraph& plan) : plan_(plan) {}

  absl::Status Run() {
    for (const PlanGraph::Carry& carry : plan_.carries)
      plan_.nodes[carry.carry].loop = plan_.nodes[carry.carry].value_loop = kUnknown;
    for (PlanNode& n : plan_.nodes) {
      if (n.kind != PlanNode::Kind::kCarry) WEIR_RETURN_IF_ERROR(Assign(n));
    }
    for (const PlanGraph::Carry& carry : plan_.carries) {
      const PlanNode &from = plan_.nodes[carry.next.node], &to = plan_.nodes[carry.carry];
      if (from.loop < 0) {
        return InvalidArgument(
            "Node ", from.node->Label(),
            " starts the next iteration of a loop, but is in none: no Enter leads to it");
      }
      if (from.loop != to.loop) return MixedFramesError(from, from.loop, to.loop);
    }
    for (const PlanValue& fetch : plan_.fetches) {
      const PlanNode& n = plan_.nodes[fetch.node];
      if (n.value_loop < 0) continue;
      return InvalidArgument("Node ", n.node->Label(),
                             " has been marked as not fetchable: it is in ", Name(n.value_loop),
                             ", whose values exist once an iteration");
    }
    return absl::OkStatus();
  }

 private:
  std::string Name(int loop) const {
    return loop < 0 ? "no loop"
                    : absl::StrCat("the while loop '", plan_.loops[loop].frame_name, "'");
  }

  absl::Status MixedFramesError(const PlanNode& n, int a, int b) const {
    return InvalidArgument("Node ", n.node->Label(),
                           " has inputs from different frames: one is in ", Name(a),
                           ", another in ", Name(b));
  }

  absl::Status Assign(PlanNode& n) {
    int loop = kUnknown;
    const auto joins_loop = [&](int id) {
      const int other = plan_.nodes[id].value_loop;
      if (other == kUnknown) return true;
      if (loop == kUnknown) loop = other;
      return loop == other;
    };
    const auto mixed_frames = [&](int id) {
      return MixedFramesError(n, loop, plan_.nodes[id].value_loop);
    };
    for (const PlanValue& v : n.inputs) {
      if (!joins_loop(v.node)) return mixed_frames(v.node);
    }
    for (const int control : n.controls) {
      if (!joins_loop(control)) return mixed_frames(control);
    }
    const bool free = n.inputs.empty() && n.controls.empty();
    if (loop == kUnknown && !free) {
      return InvalidArgument("Node ", n.node->Label(),
                             " depends on a NextIteration alone: no Enter leads to it");
    }
    n.loop = n.value_loop = free ? -1 : loop;
    for (const PlanValue& v : n.inputs) {
      PlanNode& in = plan_.nodes[v.node];
      if (in.value_loop == kUnknown) in.loop = in.value_loop = n.loop;
    }
    if (n.Is(ControlFlow::kEnter)) return Enter(n);
    if (n.Is(ControlFlow::kExit)) {
      if (n.loop < 0)
        return InvalidArgument("Node ", n.node->Label(), " exits a loop, but is in none");
      n.value_loop = plan_.loops[n.loop].parent;
    }
    return absl::OkStatus();
  }

  absl::Status Enter(PlanNode& n) {
    const std::string frame = n.node->attr<std::string>("frame_name");
    const auto [it, is_new] =
        frames_.try_emplace({n.loop, frame}, static_cast<int>(plan_.loops.size()));
    if (is_new) {
      plan_.loops.push_back({n.loop, frame});
      depth_.push_back(n.loop < 0 ? 1 : depth_[n.loop] + 1);
      if (depth_.back() > kMaxDepth) {
        return InvalidArgument("Node ", n.node->Label(), " opens the while loop '", frame,
                               "' inside ", kMaxDepth,
                               " others: loops nested so deeply are not supported");
      }
    }
    n.value_loop = it->second;
    return absl::OkStatus();
  }

  PlanGraph& plan_;
  std::map<std::pair<int, std::string>, int> frames_;  // parent and name
  std::vector<int> depth_;                             // by loop
};

}  // namespace

// Only Enter and Exit lead from loop to loop, and graphs have few loops.

absl::Status FindLoops(PlanGraph& plan) { return LoopFinder(plan).Run(); }

}  // namespace weir
