#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weir/session/fusion.h"

// The gradient of a weight that a loop over time steps multiplies with is a sum over the
// iterations,
//
//   sum  <-  sum + x' y        x: [rows, m], y: [rows, n], with as many rows as the batch
//
// and few rows make a slow product, which reads and writes all of the sum for a few multiplications
// an element: with sequences of a batch of one, it was four fifths of a step. Nobody looks at the
// sum before the loop has ended, so the products wait until there are rows enough to multiply at
// once. The fused product that made the sum becomes a _DeferMatMul, which collects rows in three
// further variables of the loop, and what took the sum's last value takes it from a _FinishMatMul
// (kernels/deferred_matmul.cc):
//
//   sum, left, right, rows  <-  _DeferMatMul(sum, left, right, rows, x, y)      in the loop
//   total                    =  _FinishMatMul(sum, left, right, rows)           after it
//
// This is done in raised loops, where the sum is a variable that the product alone takes, and where
// the product's value is nothing but the variable's next one. What is collected is at most twice as
// large as the sum, or small. Results differ by rounding: products are added up before the sum is.
namespace weir {

namespace {

class MatMulDeferral : public Fusion {
 public:
  using Fusion::Fusion;

  absl::Status Run() {
    std::vector<Sum> sums;
    for (const PlanGraph::Carry& c : plan_.carries) {
      const Sum sum = {c.carry, c.next.node, MostRows(c)};
      if (sum.most_rows > 0) sums.push_back(sum);
    }
    if (sums.empty()) return absl::OkStatus();
    CountUses();
    const int count = static_cast<int>(plan_.nodes.size());
    for (const Sum& sum : sums) {
      if (uses_[sum.variable] != 1 || uses_[sum.product] != 1) continue;
      WEIR_RETURN_IF_ERROR(Defer(sum));
    }
    if (made_for_.empty()) return absl::OkStatus();
    TakeTotals(count);
    Place(count);
    return absl::OkStatus();
  }

 private:
  struct Sum {
    int variable, product;  // nodes: the Enter, and what it is to be next
    int64_t most_rows;
  };
  struct Made {
    std::vector<int> nodes;
    int total = -1;  // the one that has the sum's last value
  };

  // The rows worth collecting for a sum of products that goes round; 0 if it is none, or not worth
  // it.
  int64_t MostRows(const PlanGraph::Carry& c) const {
    const PlanNode &variable = plan_.nodes[c.carry], &product = plan_.nodes[c.next.node];
    if (variable.removed || !plan_.IsLoopVariable(variable)) return 0;
    if (!product.Is("_FusedMatMul") || !IsFusable(product) || !product.in_body ||
        product.loop != variable.value_loop || product.inputs.size() != 3 ||
        product.inputs[2] != PlanValue{c.carry, 0} ||
        product.node->attr<std::vector<std::string>>("fused_ops") !=
            std::vector<std::string>{"Add"} ||
        !product.node->attr<bool>("transpose_a") || product.node->attr<bool>("transpose_b")) {
      return 0;
    }
    const Shape &x = ShapeOf(product.inputs[0]), &y = ShapeOf(product.inputs[1]);
    const Shape& sum = ShapeOf({c.carry, 0});
    if (!x.IsFullyDefined() || x.rank() != 2 || !y.IsFullyDefined() || y.rank() != 2) return 0;
    const int64_t rows = x.dim(0), m = x.dim(1), n = y.dim(1);
    if (y.dim(0) != rows || sum != Shape({m, n}) || sum.num_elements() == 0) return 0;
    // Deep products gain nothing any more, and what is collected should stay in the caches.
    constexpr int64_t kEnough = 256, kFewestSteps = 4, kSmall = int64_t{1} << 16;
    if (rows < 1 || rows > kEnough) return 0;
    const int64_t room = std::max(2 * (m * n / (m + n)), kSmall / (m + n));
    const int64_t most = std::min(kEnough, room) / rows * rows;
    return most >= kFewestSteps * rows ? most : 0;
  }

  // Of variables, by nodes of their loop; of others, by anybody.
  void CountUses() {
    uses_.assign(plan_.nodes.size(), 0);
    for (const PlanNode& n : plan_.nodes) {
      for (const PlanValue& v : n.inputs) {
        if (plan_.LoopLeft(plan_.nodes[v.node], n) < 0) ++uses_[v.node];
      }
      for (const int control : n.controls) ++uses_[control];
    }
    for (const int target : plan_.targets) ++uses_[target];
    for (const PlanGraph::Carry& c : plan_.carries) {
      if (!TakesLast(c)) ++uses_[c.next.node];
    }
  }

  // A variable of a loop takes the last value of a loop in it.
  bool TakesLast(const PlanGraph::Carry& c) const {
    const PlanNode &to = plan_.nodes[c.carry], &from = plan_.nodes[c.next.node];
    return plan_.IsLoopVariable(from) && !plan_.IsInside(to.value_loop, from.value_loop);
  }

  absl::Status Defer(const Sum& sum) {
    const PlanNode product = plan_.nodes[sum.product];
    const std::string& name = product.node->name();
    const PlanLoop& loop = plan_.loops[product.loop];
    std::vector<PlanValue> values = {{sum.variable, 0}};
    Made made_nodes;
    const int64_t m = ShapeOf(values[0]).dim(0), n = ShapeOf(values[0]).dim(1);
    const std::pair<const char*, Tensor> collected[] = {{"/left", Tensor(DT_FLOAT, Shape({0, m}))},
                                                        {"/right", Tensor(DT_FLOAT, Shape({0, n}))},
                                                        {"/rows", Tensor::Scalar<int64_t>(0)}};
    for (const auto& [what, first] : collected) {
      const int k = static_cast<int>(values.size());
      WEIR_ASSIGN_OR_RETURN(const int variable,
                            AddVariable(absl::StrCat(name, what), first, product, &made_nodes));
      values.push_back({variable, 0});
      plan_.carries.push_back({variable, {sum.product, k}});
    }

    const Node* const finish = MakeNode("_FinishMatMul", absl::StrCat(name, "/finish"), values);
    PlanNode ending = Make(product, *finish, loop.parent);
    ending.in_body = loop.in_body;
    ending.shapes = {ShapeOf(values[0])};
    ending.cost_ns = product.cost_ns;
    made_nodes.total = Add(std::move(ending));
    made_nodes.nodes.push_back(made_nodes.total);
    if (!Replace(made_nodes.total, *finish, values)) return NoKernel(*finish);

    values.insert(values.end(), product.inputs.begin(), product.inputs.begin() + 2);
    const Node* const defer = MakeNode("_DeferMatMul", absl::StrCat(name, "/deferred"), values,
                                       {{"most_rows", sum.most_rows}});
    if (!Replace(sum.product, *defer, values)) return NoKernel(*defer);
    // What has no shape does not lie in the arena, where a variable's next value has another place
    // than the variable: it is handed on.
    plan_.nodes[sum.product].shapes = {Shape::UnknownRank(), Shape::UnknownRank(),
                                       Shape::UnknownRank(), Shape()};
    made_for_[sum.variable] = std::move(made_nodes);
    return absl::OkStatus();
  }

  absl::Status NoKernel(const Node& node) const { return env_.kernels.NoKernel(node, kCpu); }

  // That takes values of these types.
  Node* MakeNode(absl::string_view op, const std::string& name,
                 const std::vector<PlanValue>& values, const Attrs& attrs = {}) {
    std::vector<Arg> args;
    for (const PlanValue& v : values) args.emplace_back(MakePlaceholder(plan_.nodes[v.node].type(v.output)));
    return AddNode(made(), op, args, attrs, name);
  }

  // A variable of the product's loop, with what enters it.
  absl::StatusOr<int> AddVariable(const std::string& name, const Tensor& first,
                                  const PlanNode& product, Made* made_nodes) {
    Node* const constant = MakeConst(absl::StrCat(name, "/Const"), first);
    const PlanValue value = AddConstant(*constant, first);
    const PlanLoop& loop = plan_.loops[product.loop];
    const Node* const enter = NodeBuilder(made(), "Enter")
                                  .Name(name)
                                  .Input(constant->output(0))
                                  .Attr("frame_name", loop.frame_name)
                                  .Build();
    PlanNode entering = Make(product, *enter, loop.parent);
    entering.value_loop = product.loop;
    entering.in_body = loop.in_body;
    entering.shapes = {first.rank() == 0 ? Shape() : Shape::UnknownRank()};
    const int variable = Add(std::move(entering));
    made_nodes->nodes.insert(made_nodes->nodes.end(), {value.node, variable});
    if (!Replace(variable, *enter, {{value}})) return NoKernel(*enter);
    return variable;
  }

  // After the loops. There were `count` nodes before.
  void TakeTotals(int count) {
    const auto take = [&](PlanValue& v) {
      if (const auto found = made_for_.find(v.node); found != made_for_.end())
        v.node = found->second.total;
    };
    for (int i = 0; i < count; ++i) {
      PlanNode& n = plan_.nodes[i];
      for (PlanValue& v : n.inputs) {
        if (plan_.LoopLeft(plan_.nodes[v.node], n) >= 0) take(v);
      }
    }
    for (PlanValue& v : plan_.fetches) take(v);
    for (PlanGraph::Carry& c : plan_.carries) {
      if (TakesLast(c)) take(c.next);
    }
  }

  // Puts what was made behind the sums' variables, so that the order of nodes, which goes by their
  // numbers, stays what it was.
  void Place(int count) {
    std::vector<int> order;
    for (int i = 0; i < count; ++i) {
      order.push_back(i);
      const auto found = made_for_.find(i);
      if (found == made_for_.end()) continue;
      order.insert(order.end(), found->second.nodes.begin(), found->second.nodes.end());
    }
    PutInOrder(plan_, order);
  }

  std::vector<int> uses_;                    // by node
  absl::flat_hash_map<int, Made> made_for_;  // by a sum's variable
};

}  // namespace

absl::Status DeferMatMuls(PlanGraph& plan, const PlanEnvironment& env) {
  return MatMulDeferral(plan, env).Run();
}

}  // namespace weir
