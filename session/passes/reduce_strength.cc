#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/constant_values.h"
#include "weir/session/plan/fusion.h"
#include "weir/session/plan/make_kernels.h"

// Strength reduction: a power whose exponent is known to be a small number becomes one or two ops
// that take a tenth of the time, and are then fused with their neighbors in registers
// (kernels/math/register_fusion.h). Models write squares, cubes (GELU) and inverse roots as powers,
// and the gradient rule of x^y turns x^3 into a square, whose x^2 is then computed once for both
// (eliminate_common_subexpressions.cc). x^1 is x, as simplify_algebra.cc knows.
//
// TensorFlow's Grappler does the same for the exponents -1, -1/2, 0, 1/2, 2 and 3, so that the
// results in the corners are TensorFlow's: a root of -0 is -0, and one of -inf is NaN. A product
// rounds once or twice, std::pow once; 16-bit floats are therefore rewritten only where TensorFlow
// does. 1 / x is squared for x^-2, and not the other way around, since the square overflows and
// underflows first.
namespace weir {

namespace {

// x^exponent is `op` of `inner` of x, or of x alone if there is no inner op. A Mul multiplies x by
// the inner value.
struct Power {
  double exponent;
  const char* op;
  const char* inner = nullptr;
  bool in_integers = false, in_narrow_floats = true;
};
constexpr Power kPowers[] = {
    {.exponent = 0, .op = "OnesLike", .in_integers = true},
    {.exponent = 2, .op = "Square", .in_integers = true},
    {.exponent = 3, .op = "Mul", .inner = "Square", .in_integers = true},
    {.exponent = 4,
     .op = "Square",
     .inner = "Square",
     .in_integers = true,
     .in_narrow_floats = false},
    {.exponent = 0.5, .op = "Sqrt"},
    {.exponent = -0.5, .op = "Rsqrt"},
    {.exponent = -1, .op = "Reciprocal"},
    {.exponent = -2, .op = "Square", .inner = "Reciprocal", .in_narrow_floats = false},
};

class StrengthReduction : public Fusion {
 public:
  using Fusion::Fusion;

  absl::Status Run() {
    const size_t num_nodes = plan_.nodes.size();
    for (size_t id = 0; id < num_nodes; ++id) {
      if (const Power* const power = FindPower(plan_.nodes[id]))
        Reduce(static_cast<int>(id), *power);
    }
    return out_of_order_ ? SortTopologically(plan_) : absl::OkStatus();
  }

 private:
  // Returns the row for a node that is a power of its first input, with that input's shape.
  const Power* FindPower(const PlanNode& n) const {
    if (!n.Is("Pow") || !IsFusable(n)) return nullptr;
    const Tensor* const exponent = ConstantOf(n.inputs[1]);
    if (exponent == nullptr || plan_.nodes[n.inputs[1].node].may_be_dead) return nullptr;
    if (exponent->rank() != 0 && !plan_.KeepsShape(n, n.inputs[0])) return nullptr;
    const DataType type = n.type(0);
    const std::optional<double> value = ValueOfAll(*exponent);
    for (const Power& power : kPowers) {
      if (value != power.exponent) continue;
      const bool fits =
          IsFloating(type) ? power.in_narrow_floats || ElementSize(type) > 2 : power.in_integers;
      return fits ? &power : nullptr;
    }
    return nullptr;
  }

  void Reduce(int id, const Power& power) {
    const PlanValue x = plan_.nodes[id].inputs[0];
    const std::string& name = plan_.nodes[id].node->name();
    absl::InlinedVector<PlanValue, 2> inputs = {x};
    if (absl::string_view(power.op) == "Mul") inputs.push_back(x);
    const Node* const outer = MakeNode(id, power.op, name, inputs.size());
    if (outer == nullptr) return;
    std::optional<PlanNode> before;
    if (power.inner != nullptr) {
      const Node* const inner = MakeNode(id, power.inner, absl::StrCat(name, "/inner"), 1);
      if (inner == nullptr) return;
      before = NodeLike(plan_.nodes[id], *inner, x);
    }
    if (!Replace(id, *outer, inputs)) return;
    if (before) {
      const int inner = plan_.Insert(*std::move(before));
      plan_.nodes[id].inputs.back() = {inner, 0};
      out_of_order_ = true;
    }
    plan_.nodes[id].cost_ns = EstimateCost(plan_, plan_.nodes[id], env_);
  }

  // Returns null if the op has no kernel for the type of the node.
  const Node* MakeNode(int id, absl::string_view op, absl::string_view name, size_t num_inputs) {
    NodeBuilder builder(internal_graph(), op);
    builder.Name(name);
    for (size_t i = 0; i < num_inputs; ++i) builder.Input(MakePlaceholder(plan_.nodes[id].type(0)));
    const Node* const node = builder.Build();
    const bool is_valid = internal_graph().TakeStatus().ok() && node != nullptr;
    return is_valid && env_.kernels.Find(*node, kCpu) != nullptr ? node : nullptr;
  }

  // Returns a node of x that runs where the power does. Its errors name the power.
  PlanNode NodeLike(const PlanNode& power, const Node& node, const PlanValue& x) const {
    PlanNode n = Make(power, node, power.loop, {x});
    n.reported_node = power.reported_node != nullptr ? power.reported_node : power.node;
    n.shapes = power.shapes;
    n.may_be_dead = power.may_be_dead;
    n.in_body = power.in_body;
    n.step_invariant = power.step_invariant;
    n.cost_ns = EstimateCost(plan_, n, env_);
    return n;
  }

  bool out_of_order_ = false;
};

}  // namespace

absl::Status ReduceStrength(PlanGraph& plan, const PlanEnvironment& env) {
  return StrengthReduction(plan, env).Run();
}

}  // namespace weir
