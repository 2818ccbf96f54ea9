#include <optional>
#include <string>
#include <vector>

#include "weir/session/fusion.h"

// What is cut from a product is cut from a factor before. A recurrent cell multiplies its input and
// its state, side by side, with one matrix; the gradient is a product as wide as both, of which the
// loop takes the columns of the state, and nobody the others where the input is no variable. So
//
//   Slice(MatMul(a, b), columns)  becomes  MatMul(a, Slice(b, columns)),
//
// or rows of `a`, as long as the product is needed for nothing else. It is done where the slice of
// the factor lies together in memory and begins at a line, which are rows of an `a` that is not
// transposed and columns of a `b` that is; and where the factor has memory of its own: then Slice
// gives a part of that, and copies nothing. A factor that is step-invariant from step to step is better kept
// packed as a whole. Results differ by rounding, since a product's size decides how it is computed.
namespace weir {

namespace {

class SliceSinking : public Fusion {
 public:
  using Fusion::Fusion;

  absl::Status Run() {
    const size_t count = plan_.nodes.size();
    for (size_t id = 0; id < count; ++id) {
      if (!plan_.nodes[id].Is("Slice") || !IsFusable(plan_.nodes[id])) continue;
      if (users_.empty()) FindUsers();
      Sink(static_cast<int>(id));
    }
    return plan_.nodes.size() == count ? absl::OkStatus() : SortTopologically(plan_);
  }

 private:
  // What is left of one dimension of a product.
  struct Cut {
    int dim;
    int64_t begin, size;
  };

  void Sink(int slice) {
    const int product = plan_.nodes[slice].inputs[0].node;
    const std::optional<Cut> cut = CutOf(slice, product);
    if (!cut) return;
    // Nodes move when others are added.
    const PlanNode before = plan_.nodes[product];
    const PlanValue factor = before.inputs[cut->dim];
    const int64_t depth = ShapeOf(factor).dim(1);
    const std::string& name = before.node->name();
    const Tensor begin_at = Tensor::Vector<int64_t>({cut->begin, 0}),
                 size_of = Tensor::Vector<int64_t>({cut->size, depth});
    Node* const begin_node = MakeConst(name + "/begin", begin_at);
    Node* const size_node = MakeConst(name + "/size", size_of);
    if (begin_node == nullptr || size_node == nullptr) return;
    const Node* const part =
        AddNode(made(), "Slice", {MakePlaceholder(before.type(0)), begin_node->output(), size_node->output()},
                {}, name + "/part");
    if (part == nullptr) return;
    const PlanValue begin = AddConstant(*begin_node, begin_at),
                    size = AddConstant(*size_node, size_of);
    if (!Replace(product, *part, {factor, begin, size})) return;
    plan_.nodes[product].shapes = {Shape({cut->size, depth})};
    std::vector<PlanValue> factors(before.inputs.begin(), before.inputs.end());
    factors[cut->dim] = {product, 0};
    if (!Replace(slice, *before.node, factors)) {
      plan_.nodes[product] = before;
      return;
    }
    PlanNode& done = plan_.nodes[slice];
    done.shapes = before.shapes;
    done.shapes[0].set_dim(cut->dim, cut->size);
    done.cost_ns = before.cost_ns * static_cast<double>(done.shapes[0].num_elements()) /
                   static_cast<double>(before.shapes[0].num_elements());
    plan_.nodes[product].cost_ns = kSliceNs;
  }

  // What the slice takes of a product that is there for it alone, if it may be taken before.
  std::optional<Cut> CutOf(int slice, int product) const {
    const PlanNode &s = plan_.nodes[slice], &p = plan_.nodes[product];
    if (!p.Is("MatMul") || !CanDisappear(p, s) || !CanDisappear(s, p) ||
        users_[product].size() != 1 || users_[product][0] != slice || uses_others_[product]) {
      return std::nullopt;
    }
    const Shape& whole = p.shapes[0];
    const Tensor *const begin = ConstantOf(s.inputs[1]), *const size = ConstantOf(s.inputs[2]);
    if (begin == nullptr || size == nullptr || begin->shape() != Shape({2}) ||
        size->shape() != Shape({2}) || !whole.IsFullyDefined() || whole.rank() != 2) {
      return std::nullopt;
    }
    std::optional<Cut> cut;
    for (int dim = 0; dim < 2; ++dim) {
      const int64_t from = begin->IntAt(dim), rest = whole.dim(dim) - from;
      const int64_t count = size->IntAt(dim) == -1 ? rest : size->IntAt(dim);
      if (from < 0 || count <= 0 || count > rest) return std::nullopt;
      if (count == whole.dim(dim)) continue;
      const bool lies_together =
          dim == 0 ? !p.node->attr<bool>("transpose_a") : p.node->attr<bool>("transpose_b");
      const Shape& factor = ShapeOf(p.inputs[dim]);
      if (cut || !lies_together || !factor.IsFullyDefined() || factor.rank() != 2)
        return std::nullopt;
      const int64_t at = from * factor.dim(1) * static_cast<int64_t>(ElementSize(p.type(0)));
      if (at % static_cast<int64_t>(Allocator::kAlignment) != 0 || !HasOwnMemory(p.inputs[dim]))
        return std::nullopt;
      cut = {dim, from, count};
    }
    return cut;
  }

  // It comes from a variable, a feed, or where it was put before, not from the step's arena.
  bool HasOwnMemory(PlanValue v) const {
    if (plan_.IsStepInvariant(v)) return false;
    while (plan_.nodes[v.node].Is("Identity") && IsFusable(plan_.nodes[v.node]))
      v = plan_.nodes[v.node].inputs[0];
    const PlanNode& n = plan_.nodes[v.node];
    return n.kind == PlanNode::Kind::kFeed || n.kind == PlanNode::Kind::kRead ||
           n.Is("ReadVariableOp", "StackPopV2", "TensorListPopBack", "TensorListGetItem");
  }

  static constexpr double kSliceNs = 100;
};

}  // namespace

absl::Status SinkSlices(PlanGraph& plan, const PlanEnvironment& env) {
  return SliceSinking(plan, env).Run();
}

}  // namespace weir
