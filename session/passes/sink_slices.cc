#include <optional>
#include <string>
#include <vector>

#include "weir/session/passes/passes.h"
#include "weir/session/plan/fusion.h"

// Sinks a slice of a matrix product into a factor. A recurrent cell multiplies its input and its
// state, concatenated, by one matrix. The gradient is a product as wide as both; the loop uses the
// columns of the state, and the other columns are unused if the input is not a variable. So
//
//   Slice(MatMul(a, b), columns)  becomes  MatMul(a, Slice(b, columns)),
//
// or rows of `a`, if the product has no other use. The pass applies if the slice of the factor is
// contiguous in memory and its start is aligned (Allocator::kAlignment): that is, rows of an `a`
// that is not transposed, or columns of a `b` that is; and if the factor has its own memory: then
// Slice returns a view and copies nothing. A step-invariant factor is better kept packed as a
// whole. Results differ by rounding, since the size of a product determines how it is computed.
namespace weir {

namespace {

class SliceSinking : public Fusion {
 public:
  using Fusion::Fusion;

  absl::Status Run() {
    const size_t count = plan_.nodes.size();
    for (size_t id = 0; id < count; ++id) {
      if (!plan_.nodes[id].Is("Slice") || !IsFusable(plan_.nodes[id])) continue;
      Sink(static_cast<int>(id));
    }
    return plan_.nodes.size() == count ? absl::OkStatus() : SortTopologically(plan_);
  }

 private:
  // The range of one dimension of a product that the slice keeps.
  struct KeptRange {
    int dim;
    int64_t begin, size;
  };

  void Sink(int slice) {
    const int product = plan_.nodes[slice].inputs[0].node;
    const std::optional<KeptRange> range = FindKeptRange(slice, product);
    if (!range) return;
    // A copy: adding nodes invalidates references.
    const PlanNode before = plan_.nodes[product];
    const PlanValue factor = before.inputs[range->dim];
    const int64_t depth = ShapeOf(factor).dim(1);
    const std::string& name = before.node->name();
    const Tensor begin_at = Tensor::Vector<int64_t>({range->begin, 0}),
                 size_of = Tensor::Vector<int64_t>({range->size, depth});
    Node* const begin_node = MakeConst(name + "/begin", begin_at);
    Node* const size_node = MakeConst(name + "/size", size_of);
    if (begin_node == nullptr || size_node == nullptr) return;
    const Node* const part =
        AddNode(internal_graph(), "Slice",
                {MakePlaceholder(before.type(0)), begin_node->output(), size_node->output()}, {},
                name + "/part");
    if (part == nullptr) return;
    const PlanValue begin = AddConstant(*begin_node, begin_at),
                    size = AddConstant(*size_node, size_of);
    if (!Replace(product, *part, {factor, begin, size})) return;
    plan_.nodes[product].shapes = {Shape({range->size, depth})};
    std::vector<PlanValue> factors(before.inputs.begin(), before.inputs.end());
    factors[range->dim] = {product, 0};
    if (!Replace(slice, *before.node, factors)) {
      plan_.nodes[product] = before;
      return;
    }
    PlanNode& done = plan_.nodes[slice];
    done.shapes = before.shapes;
    done.shapes[0].set_dim(range->dim, range->size);
    done.cost_ns = before.cost_ns * static_cast<double>(done.shapes[0].num_elements()) /
                   static_cast<double>(before.shapes[0].num_elements());
    plan_.nodes[product].cost_ns = kSliceNs;
  }

  // Returns the range that the slice keeps, if it is the product's only user and can be sunk into a
  // factor.
  std::optional<KeptRange> FindKeptRange(int slice, int product) {
    const PlanNode &s = plan_.nodes[slice], &p = plan_.nodes[product];
    if (!p.Is("MatMul") || !CanDisappear(p, s) || !CanDisappear(s, p) ||
        uses().OnlyUser(product) != slice) {
      return std::nullopt;
    }
    const Shape& whole = p.shapes[0];
    const Tensor *const begin = ConstantOf(s.inputs[1]), *const size = ConstantOf(s.inputs[2]);
    if (begin == nullptr || size == nullptr || begin->shape() != Shape({2}) ||
        size->shape() != Shape({2}) || !whole.IsFullyDefined() || whole.rank() != 2) {
      return std::nullopt;
    }
    std::optional<KeptRange> range;
    for (int dim = 0; dim < 2; ++dim) {
      const int64_t from = begin->IntAt(dim), rest = whole.dim(dim) - from;
      const int64_t count = size->IntAt(dim) == -1 ? rest : size->IntAt(dim);
      if (from < 0 || count <= 0 || count > rest) return std::nullopt;
      if (count == whole.dim(dim)) continue;
      const bool is_contiguous =
          dim == 0 ? !p.node->attr<bool>("transpose_a") : p.node->attr<bool>("transpose_b");
      const Shape& factor = ShapeOf(p.inputs[dim]);
      if (range || !is_contiguous || !factor.IsFullyDefined() || factor.rank() != 2)
        return std::nullopt;
      const int64_t at = from * factor.dim(1) * static_cast<int64_t>(ElementSize(p.type(0)));
      if (at % static_cast<int64_t>(Allocator::kAlignment) != 0 || !HasOwnMemory(p.inputs[dim]))
        return std::nullopt;
      range = {dim, from, count};
    }
    return range;
  }

  // Returns true if the value comes from a variable, a feed, or a stack or list, not from the
  // step's arena.
  bool HasOwnMemory(PlanValue v) const {
    if (plan_.IsStepInvariant(v)) return false;
    while (plan_.nodes[v.node].is_identity() && IsFusable(plan_.nodes[v.node]))
      v = plan_.nodes[v.node].inputs[0];
    const PlanNode& n = plan_.nodes[v.node];
    return n.kind == PlanNode::Kind::kFeed || n.kind == PlanNode::Kind::kRead ||
           n.Is(VariableUse::kReads) || n.traits().container.kind == ContainerUse::Kind::kTakes;
  }

  static constexpr double kSliceNs = 100;
};

}  // namespace

absl::Status SinkSlices(PlanGraph& plan, const PlanEnvironment& env) {
  return SliceSinking(plan, env).Run();
}

}  // namespace weir
