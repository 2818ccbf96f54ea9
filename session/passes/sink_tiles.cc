#include <algorithm>

#include "absl/algorithm/container.h"
#include "weir/kernels/math/fused_elementwise.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/fusion.h"

// Computes on small values before they are broadcast. The gradient of a mean is a Tile (or a
// BroadcastTo, in newer graphs) of the incoming gradient, divided by a count; for a variance it is
// then doubled. The graph computes one number per element, although only one per row is distinct.
// So an elementwise op on such a Tile and on values with no more elements than the Tile's input is
// swapped with it:
//
//   RealDiv(Tile(x), count)  becomes  Tile(RealDiv(x, count)),
//
// if the Tile has no other use. It sinks until it reaches an op that cannot be swapped: mostly a
// multiplication by a full tensor, which uses the Tile's input directly (fuse_elementwise.cc), so
// that the broadcast value is never materialized. Elements are computed from the same numbers by
// the same functions, and results are equal, bit for bit.
namespace weir {

namespace {

class TileSinking : public Fusion {
 public:
  using Fusion::Fusion;

  absl::Status Run() {
    for (size_t id = 0; id < plan_.nodes.size(); ++id) {
      if (!IsTile(plan_.nodes[id])) continue;
      for (int tile = static_cast<int>(id); tile >= 0;) tile = Sink(tile);
    }
    return out_of_order_ ? SortTopologically(plan_) : absl::OkStatus();
  }

 private:
  static bool IsTile(const PlanNode& n) { return n.traits().repeated_input == 0 && !n.removed; }

  // Swaps the Tile with its user. Returns the new position of the Tile; -1 if it stays.
  int Sink(int tile) {
    PlanNode& t = plan_.nodes[tile];
    if (uses().Of(tile).empty() || !uses().HasOnlyInputUses(tile)) return -1;
    const int user = uses().Of(tile)[0].user;
    PlanNode& n = plan_.nodes[user];
    const bool is_only_user =
        absl::c_all_of(uses().Of(tile), [user](const PlanUse& use) { return use.user == user; });
    if (!is_only_user || !CanDisappear(t, n) || !CanDisappear(n, t) || !CanSinkThrough(n, tile))
      return -1;
    const Node &op = *n.node, &repeat = *t.node;
    const PlanValue x = t.inputs[0], multiples = t.inputs[1];
    std::vector<PlanValue> arguments;
    for (const PlanValue& v : n.inputs) arguments.push_back(v.node == tile ? x : v);
    const PlanNode old_tile = t;
    if (!Replace(tile, op, arguments)) return -1;
    const Shape small = ShapeOf(x);
    t.shapes[0] = small;
    if (!Replace(user, repeat, {{tile, 0}, multiples})) {
      t = old_tile;
      return -1;
    }
    std::swap(t.cost_ns, n.cost_ns);
    t.cost_ns *= static_cast<double>(small.num_elements()) /
                 static_cast<double>(std::max<int64_t>(n.shapes[0].num_elements(), 1));
    t.may_be_dead = n.may_be_dead;
    for (const PlanValue& v : arguments) {
      if (v == x) continue;
      uses().ReplaceUser(v.node, user, tile);
      out_of_order_ = out_of_order_ || v.node > tile;
    }
    return user;
  }

  // Returns true for an elementwise op that can be computed on the Tile's input.
  bool CanSinkThrough(const PlanNode& n, int tile) const {
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
