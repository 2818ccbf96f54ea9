#include <algorithm>

#include "absl/algorithm/container.h"
#include "weir/kernels/fused_elementwise.h"
#include "weir/session/fusion.h"

// What is spread out is computed before it is spread out. The gradient of a mean is a Tile (or a
// BroadcastTo, in newer graphs) of the gradient that comes, divided by a count; of a variance it is
// doubled after that. The graph asks for a number for each element, and there is one for each row.
// So an element-wise op of such a Tile and of values that have no more elements than the Tile's
// input trades places with it:
//
//   RealDiv(Tile(x), count)  becomes  Tile(RealDiv(x, count)),
//
// as long as the Tile is needed for nothing else. It sinks until it comes to what cannot be
// computed before: mostly a product with a whole tensor, which takes the Tile's input instead
// (fuse_elementwise.cc), so that nothing is ever spread out. Elements are computed of the same
// numbers by the same functions, and results are equal, bit for bit.
namespace weir {

namespace {

class TileSinking : public Fusion {
 public:
  using Fusion::Fusion;

  absl::Status Run() {
    for (size_t id = 0; id < plan_.nodes.size(); ++id) {
      if (!IsTile(plan_.nodes[id])) continue;
      if (users_.empty()) FindUsers();
      for (int tile = static_cast<int>(id); tile >= 0;) tile = Sink(tile);
    }
    return out_of_order_ ? SortTopologically(plan_) : absl::OkStatus();
  }

 private:
  static bool IsTile(const PlanNode& n) { return n.Is("Tile", "BroadcastTo") && !n.removed; }

  // Where the Tile is after a step; -1 if it stays.
  int Sink(int tile) {
    PlanNode& t = plan_.nodes[tile];
    if (users_[tile].empty() || users_[tile][0] < 0 || uses_others_[tile]) return -1;
    const int user = users_[tile][0];
    PlanNode& n = plan_.nodes[user];
    const bool is_only_user = absl::c_all_of(users_[tile], [user](int u) { return u == user; });
    if (!is_only_user || !CanDisappear(t, n) || !CanDisappear(n, t) || !ComputesBefore(n, tile))
      return -1;
    const Node &op = *n.node, &repeat = *t.node;
    const PlanValue x = t.inputs[0], multiples = t.inputs[1];
    std::vector<PlanValue> arguments;
    for (const PlanValue& v : n.inputs) arguments.push_back(v.node == tile ? x : v);
    const PlanNode before = t;
    if (!Replace(tile, op, arguments)) return -1;
    const Shape small = ShapeOf(x);
    t.shapes[0] = small;
    if (!Replace(user, repeat, {{tile, 0}, multiples})) {
      t = before;
      return -1;
    }
    std::swap(t.cost_ns, n.cost_ns);
    t.cost_ns *= static_cast<double>(small.num_elements()) /
                 static_cast<double>(std::max<int64_t>(n.shapes[0].num_elements(), 1));
    t.may_be_dead = n.may_be_dead;
    for (const PlanValue& v : arguments) {
      if (v == x) continue;
      absl::c_replace(users_[v.node], user, tile);
      out_of_order_ = out_of_order_ || v.node > tile;
    }
    return user;
  }

  // An element-wise op that gives the same for what is to be repeated.
  bool ComputesBefore(const PlanNode& n, int tile) const {
    const PlanNode& t = plan_.nodes[tile];
    const Shape& x = ShapeOf(t.inputs[0]);
    if (!x.IsFullyDefined() || !n.shapes[0].IsFullyDefined() || n.shapes[0] != t.shapes[0])
      return false;
    const DataType type = t.node->output_type(0);
    if (n.node->output_type(0) != type) return false;
    const auto op = FindFusableOp(n.node->op_name(), n.inputs.size(), type);
    return op && absl::c_all_of(n.inputs, [&](const PlanValue& v) {
             if (v.node == tile) return true;
             const absl::StatusOr<Shape> both = BroadcastShapes(ShapeOf(v), x);
             return plan_.nodes[v.node].type(v.output) == type && both.ok() && *both == x &&
                    (op->broadcasts || ShapeOf(v) == x);
           });
  }

  bool out_of_order_ = false;
};

}  // namespace

absl::Status SinkTiles(PlanGraph& plan, const PlanEnvironment& env) {
  return TileSinking(plan, env).Run();
}

}  // namespace weir
