#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/fusion.h"

// The gradient of a weight that a loop over time steps multiplies with is a sum over the
// iterations,
//
//   sum  <-  sum + x' y        x: [rows, m], y: [rows, n], with as many rows as the batch
//
// With few rows the matrix product is slow: it reads and writes all of the sum for a few
// multiplications per element. For sequences with a batch of one it took four fifths of a step.
// Nothing reads the sum before the loop has ended, so the products are deferred until there are
// enough rows to multiply at once. The fused product that computed the sum becomes a _DeferMatMul,
// which collects rows in three additional loop variables, and users of the sum's last value take it
// from a _FinishMatMul (kernels/linalg/deferred_matmul.cc):
//
//   sum, left, right, rows  <-  _DeferMatMul(sum, left, right, rows, x, y)      in the loop
//   total                    =  _FinishMatMul(sum, left, right, rows)           after it
//
// The pass does this in structured loops, where the sum is a loop variable that only the product
// uses, and where the product is used only as the next value of that variable. The collected rows
// take at most twice as much memory as the sum, or little. Results differ by rounding: the products
// are added to each other before they are added to the sum.
namespace weir {

namespace {

class MatMulDeferral : public Fusion {
 public:
  using Fusion::Fusion;

  absl::Status Run() {
    std::vector<Sum> sums;
    for (const PlanGraph::Carry& c : plan_.carries) {
      const Sum sum = {c.carry, c.next.node, MaxRows(c)};
      if (sum.most_rows > 0) sums.push_back(sum);
    }
    if (sums.empty()) return absl::OkStatus();
    const int count = static_cast<int>(plan_.nodes.size());
    for (const Sum& sum : sums) {
      if (NumUses(sum.variable) != 1 || NumUses(sum.product) != 1) continue;
      WEIR_RETURN_IF_ERROR(Defer(sum));
    }
    if (deferred_.empty()) return absl::OkStatus();
    RedirectToTotals(count);
    PlaceDeferredNodes(count);
    return absl::OkStatus();
  }

 private:
  struct Sum {
    int variable, product;  // nodes: the Enter, and the product that is its next value
    int64_t most_rows;
  };
  struct DeferredNodes {
    std::vector<int> nodes;
    int total = -1;  // the node that has the sum's last value
  };

  // Returns how many rows to collect for a loop-carried sum of products; 0 if the value is no such
  // sum or collecting is not worth it.
  int64_t MaxRows(const PlanGraph::Carry& c) const {
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
    // Deeper products gain nothing more, and the collected rows should stay in the caches.
    constexpr int64_t kMaxRows = 256, kMinSteps = 4, kMinElements = int64_t{1} << 16;
    if (rows < 1 || rows > kMaxRows) return 0;
    const int64_t room = std::max(2 * (m * n / (m + n)), kMinElements / (m + n));
    const int64_t most = std::min(kMaxRows, room) / rows * rows;
    return most >= kMinSteps * rows ? most : 0;
  }

  // The number of uses of a node; of a loop variable, only those by nodes of its loop.
  int NumUses(int node) {
    return static_cast<int>(absl::c_count_if(uses().Of(node), [&](const PlanUse& use) {
      switch (use.kind) {
        case PlanUse::Kind::kInput:
          return plan_.ExitedLoop(plan_.nodes[node], plan_.nodes[use.user]) < 0;
        case PlanUse::Kind::kCarry:
          return !TakesLastValue({use.user, {node, use.output}});
        case PlanUse::Kind::kFetch:
          return false;  // takes the last value
        case PlanUse::Kind::kControl:
        case PlanUse::Kind::kTarget:
          return true;
      }
      return true;
    }));
  }

  // True if a loop variable takes the last value of a nested loop.
  bool TakesLastValue(const PlanGraph::Carry& c) const {
    const PlanNode &to = plan_.nodes[c.carry], &from = plan_.nodes[c.next.node];
    return plan_.IsLoopVariable(from) && !plan_.IsInside(to.value_loop, from.value_loop);
  }

  absl::Status Defer(const Sum& sum) {
    const PlanNode product = plan_.nodes[sum.product];
    const std::string& name = product.node->name();
    const PlanLoop& loop = plan_.loops[product.loop];
    std::vector<PlanValue> values = {{sum.variable, 0}};
    DeferredNodes deferred;
    const int64_t m = ShapeOf(values[0]).dim(0), n = ShapeOf(values[0]).dim(1);
    const std::pair<const char*, Tensor> collected[] = {{"/left", Tensor(DT_FLOAT, Shape({0, m}))},
                                                        {"/right", Tensor(DT_FLOAT, Shape({0, n}))},
                                                        {"/rows", Tensor::Scalar<int64_t>(0)}};
    for (const auto& [what, first] : collected) {
      const int k = static_cast<int>(values.size());
      WEIR_ASSIGN_OR_RETURN(const int variable,
                            AddVariable(absl::StrCat(name, what), first, product, &deferred));
      values.push_back({variable, 0});
      plan_.carries.push_back({variable, {sum.product, k}});
    }

    const Node* const finish = MakeNode("_FinishMatMul", absl::StrCat(name, "/finish"), values);
    PlanNode ending = Make(product, *finish, loop.parent);
    ending.in_body = loop.in_body;
    ending.shapes = {ShapeOf(values[0])};
    ending.cost_ns = product.cost_ns;
    deferred.total = plan_.Insert(std::move(ending));
    deferred.nodes.push_back(deferred.total);
    if (!Replace(deferred.total, *finish, values)) return NoKernel(*finish);

    values.insert(values.end(), product.inputs.begin(), product.inputs.begin() + 2);
    const Node* const defer = MakeNode("_DeferMatMul", absl::StrCat(name, "/deferred"), values,
                                       {{"most_rows", sum.most_rows}});
    if (!Replace(sum.product, *defer, values)) return NoKernel(*defer);
    // Values without a known shape are not in the arena, so they are passed on without a copy. In
    // the arena a variable's next value would have another place than the variable.
    plan_.nodes[sum.product].shapes = {Shape::UnknownRank(), Shape::UnknownRank(),
                                       Shape::UnknownRank(), Shape()};
    deferred_[sum.variable] = std::move(deferred);
    return absl::OkStatus();
  }

  absl::Status NoKernel(const Node& node) const { return env_.kernels.NoKernel(node, kCpu); }

  // Creates a node that takes values of these types.
  Node* MakeNode(absl::string_view op, const std::string& name,
                 const std::vector<PlanValue>& values, const Attrs& attrs = {}) {
    std::vector<Arg> args;
    for (const PlanValue& v : values)
      args.emplace_back(MakePlaceholder(plan_.nodes[v.node].type(v.output)));
    return AddNode(internal_graph(), op, args, attrs, name);
  }

  // Adds a variable to the product's loop, with its initial value.
  absl::StatusOr<int> AddVariable(const std::string& name, const Tensor& first,
                                  const PlanNode& product, DeferredNodes* deferred) {
    Node* const constant = MakeConst(absl::StrCat(name, "/Const"), first);
    const PlanValue value = AddConstant(*constant, first);
    const PlanLoop& loop = plan_.loops[product.loop];
    const Node* const enter = NodeBuilder(internal_graph(), "Enter")
                                  .Name(name)
                                  .Input(constant->output(0))
                                  .Attr("frame_name", loop.frame_name)
                                  .Build();
    PlanNode entering = Make(product, *enter, loop.parent);
    entering.value_loop = product.loop;
    entering.in_body = loop.in_body;
    entering.shapes = {first.rank() == 0 ? Shape() : Shape::UnknownRank()};
    const int variable = plan_.Insert(std::move(entering));
    deferred->nodes.insert(deferred->nodes.end(), {value.node, variable});
    if (!Replace(variable, *enter, {{value}})) return NoKernel(*enter);
    return variable;
  }

  // Replaces uses after the loops. `count`: the number of nodes before the pass.
  void RedirectToTotals(int count) {
    const auto take = [&](PlanValue& v) {
      if (const auto found = deferred_.find(v.node); found != deferred_.end())
        v.node = found->second.total;
    };
    for (int i = 0; i < count; ++i) {
      PlanNode& n = plan_.nodes[i];
      for (PlanValue& v : n.inputs) {
        if (plan_.ExitedLoop(plan_.nodes[v.node], n) >= 0) take(v);
      }
    }
    for (PlanValue& v : plan_.fetches) take(v);
    for (PlanGraph::Carry& c : plan_.carries) {
      if (TakesLastValue(c)) take(c.next);
    }
  }

  // Moves the new nodes behind the variables of the sums, so that the order of the other nodes,
  // which follows their indices, does not change.
  void PlaceDeferredNodes(int count) {
    std::vector<int> order;
    for (int i = 0; i < count; ++i) {
      order.push_back(i);
      const auto found = deferred_.find(i);
      if (found == deferred_.end()) continue;
      order.insert(order.end(), found->second.nodes.begin(), found->second.nodes.end());
    }
    ReorderNodes(plan_, order);
  }

  absl::flat_hash_map<int, DeferredNodes> deferred_;  // by the sum's variable
};

}  // namespace

absl::Status DeferMatMuls(PlanGraph& plan, const PlanEnvironment& env) {
  return MatMulDeferral(plan, env).Run();
}

}  // namespace weir
