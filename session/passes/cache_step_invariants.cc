#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "weir/core/graph/scope.h"
#include "weir/session/passes/cached_subplan.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/fusion.h"

// Caches step-invariant values. In inference the weights are the same in every step, though a graph
// that reads variables, as those of SavedModels do, cannot say so. What is computed from
// step-invariant values alone (PlanGraph::IsStepInvariant) need not be recomputed in each step:
// factors of batch norms from their variances, transposed or concatenated weights. This pass
// combines all such nodes into one node, _CachedSubplan, which computes them once, and again when
// one of its arguments has changed (cached_subplan.h). The results are step-invariant too, so that
// GEMMs and convolutions keep them packed.
//
// First the pass rewrites the graph so that more of it depends on step-invariant values alone. A
// convolution whose result is multiplied by a per-channel vector, as in a decomposed batch norm,
//
//   Mul(Conv2D(x, filter), factor)  =  Conv2D(x, Mul(filter, factor))
//
// needs no multiplication per step if filter and factor are step-invariant (Jacob et al. 2018,
// section 3.2). For this FusedBatchNorm in inference is decomposed, with a vector to add. Products
// whose filter and factor are all constants are left to fuse_epilogues.cc, except for plain
// factors, which it does not handle. Results differ by the rounding of filters.
//
// A value is cached if it is step-invariant, is neither a constant nor a variable's own value, and
// is used by a node that is not step-invariant. Nodes that have control inputs or effects, may be
// dead, or are in a loop are not cached. Values larger than kMaxBytes are recomputed in each step,
// since a gather from a large table is cheap, and the table is not.
namespace weir {

namespace {

constexpr int64_t kMaxBytes = int64_t{64} << 20;  // bytes of a value
constexpr double kMinCostNs =
    2000;  // of all nodes, nanoseconds: less is not worth comparing the arguments

class StepInvariantCacher : public Fusion {
 public:
  using Fusion::Fusion;

  // Returns true if the plan has changed.
  bool Run() {
    if (plan_.writes_state) return false;
    for (PlanNode& n : plan_.nodes) n.step_invariant = n.step_invariant || ComputesStepInvariant(n);
    const size_t before = plan_.nodes.size();
    if (env_.enabled("fuse_epilogues")) FoldFactors();
    const bool folded = plan_.nodes.size() != before;
    if (CacheValues(folded)) return true;
    for (PlanNode& n : plan_.nodes)
      n.step_invariant = n.step_invariant && n.kind != PlanNode::Kind::kOp;
    return folded;
  }

 private:
  static bool IsConstrained(const PlanNode& n) {
    return n.may_be_dead || n.loop >= 0 || !n.controls.empty();
  }

  // True if the values of `n` are step-invariant and may be cached. All nodes before `n` have been
  // checked.
  bool ComputesStepInvariant(const PlanNode& n) const {
    if (!IsFusable(n) || IsConstrained(n) || n.kernel.is_async() || n.is_identity()) return false;
    for (int k = 0; k < n.num_outputs(); ++k) {
      const Shape& shape = n.shapes[k];
      if (!IsPlain(n.type(k)) || IsRef(n.type(k)) || !shape.IsFullyDefined()) return false;
      if (shape.num_elements() > kMaxBytes / static_cast<int64_t>(ElementSize(n.type(k))))
        return false;
    }
    const auto step_invariant = [&](const PlanValue& v) { return IsInvariant(v); };
    const auto is_constant = [&](const PlanValue& v) { return ConstantOf(v) != nullptr; };
    return absl::c_all_of(n.inputs, step_invariant) && !absl::c_all_of(n.inputs, is_constant);
  }

  // True if the value is step-invariant and its producer depends on nothing that may depend on the
  // cached node.
  bool IsInvariant(const PlanValue& v) const {
    const PlanNode& producer = plan_.nodes[v.node];
    if (!IsPlain(producer.type(v.output)) || IsRef(producer.type(v.output)) ||
        !ShapeOf(v).IsFullyDefined() || producer.may_be_dead) {
      return false;
    }
    if (ConstantOf(v) != nullptr) return true;
    if (!plan_.IsStepInvariant(v) || IsConstrained(producer)) return false;
    return !producer.is_identity() || IsInvariant(producer.inputs[0]);
  }

  // ---- factors

  void FoldFactors() {
    const size_t count = plan_.nodes.size();
    for (size_t id = 0; id < count; ++id) {
      const PlanNode& n = plan_.nodes[id];
      const std::string& op = n.node->op_name();
      if ((op == "Conv2D" || op == "DepthwiseConv2dNative") && IsCandidate(n) &&
          IsInvariant(n.inputs[1]) &&
          n.node->attr_or<std::string>("data_format", "NHWC") == "NHWC" &&
          n.shapes[0].IsFullyDefined() && n.shapes[0].rank() == 4) {
        FoldFactorsInto(static_cast<int>(id));
      }
    }
    plan_.ForEachUse([this](PlanValue& v) { FollowReplacement(v); });
  }

  bool IsCandidate(const PlanNode& n) const {
    return IsFusable(n) && !IsConstrained(n) && n.type(0) == DT_FLOAT && !n.step_invariant;
  }

  void FoldFactorsInto(int conv) {
    int last = conv;
    for (int id = uses().OnlyUser(conv); id >= 0; id = uses().OnlyUser(id)) {
      const PlanNode& n = plan_.nodes[id];
      const std::string& op = n.node->op_name();
      if (!IsCandidate(n) || uses().UsesOtherOutputs(id)) return;
      if (op == "Mul" && n.inputs.size() == 2) {
        // A value that is fetched or that other nodes wait for must still be computed.
        if (uses().Of(id).empty() || !uses().HasOnlyInputUses(id) || !IsPerChannel(n, last)) return;
        ScaleFilter(conv, OtherInput(n, last));
        plan_.Erase(id);
        replaced_by_[id] = {conv, 0};
      } else if (op == "Add" || op == "AddV2") {
        if (IsPerChannel(n, last)) ReshapeToBias(id, last);
        return;
      } else if (n.traits().rows == RowRule::kNorm) {
        if (last == conv) DecomposeBatchNorm(id, conv);
        return;
      } else {
        return;
      }
      last = id;
    }
  }

  static const PlanValue& OtherInput(const PlanNode& n, int node) {
    return n.inputs[n.inputs[0].node == node ? 1 : 0];
  }

  // True if the input besides the value of `last` is a step-invariant vector of channels.
  bool IsPerChannel(const PlanNode& n, int last) const {
    const PlanValue& other = OtherInput(n, last);
    return other.node != last && IsInvariant(other) &&
           HasOnlyDims(ShapeOf(other), plan_.nodes[last].shapes[0], 3, 4);
  }

  // Adds a step-invariant node, which will be cached.
  PlanValue Add(absl::string_view op, absl::Span<const PlanValue> inputs, const Shape& shape) {
    NodeBuilder builder(internal_graph(), op);
    builder.Name("step_invariant/" + std::string(op));
    for (const PlanValue& v : inputs)
      builder.Input(MakePlaceholder(BaseType(plan_.nodes[v.node].type(v.output))));
    return AddInvariantNode(*builder.Build(), inputs, shape);
  }
  PlanValue AddConstant(const Tensor& value) {
    const PlanValue v = Fusion::AddConstant(*MakeConst("step_invariant/Const", value), value);
    plan_.nodes[v.node].step_invariant = true;
    return v;
  }
  PlanValue AddInvariantNode(const Node& node, absl::Span<const PlanValue> inputs,
                             const Shape& shape) {
    PlanNode n;
    n.node = &node;
    n.device = env_.devices[0].get();
    n.def = env_.kernels.Find(node, kCpu);
    n.inputs.assign(inputs.begin(), inputs.end());
    n.shapes = {shape};
    n.step_invariant = true;
    return {plan_.Insert(std::move(n)), 0};
  }
  PlanValue ReshapeTo(PlanValue v, const Shape& shape) {
    if (ShapeOf(v) == shape) return v;
    Tensor dims(DT_INT32, Shape({shape.rank()}));
    for (int d = 0; d < shape.rank(); ++d)
      dims.data<int32_t>()[d] = static_cast<int32_t>(shape.dim(d));
    return Add("Reshape", {v, AddConstant(dims)}, shape);
  }

  // Scales the filter of [height, width, in, out], or of [height, width, in, multiplier], which has
  // a channel for each pair of the last two.
  void ScaleFilter(int conv, PlanValue factor) {
    const PlanValue filter = plan_.nodes[conv].inputs[1];
    const Shape shape = ShapeOf(filter);
    const bool depthwise = plan_.nodes[conv].node->op_name() != "Conv2D";
    const Shape last = depthwise ? Shape({shape.dim(2), shape.dim(3)}) : Shape({shape.dim(3)});
    const PlanValue vector = ReshapeTo(factor, last);
    const PlanValue scaled = Add("Mul", {filter, vector}, shape);
    plan_.nodes[conv].inputs[1] = scaled;
  }

  // Reshapes the operand to a vector, which fuse_epilogues.cc recognizes as a bias.
  void ReshapeToBias(int id, int last) {
    const PlanNode& n = plan_.nodes[id];
    const int k = n.inputs[0].node == last ? 1 : 0;
    const PlanValue vector = ReshapeTo(n.inputs[k], Shape({plan_.nodes[last].shapes[0].dim(3)}));
    plan_.nodes[id].inputs[k] = vector;
  }

  void DecomposeBatchNorm(int id, int conv) {
    const PlanNode& n = plan_.nodes[id];
    const int64_t channels = plan_.nodes[conv].shapes[0].dim(3);
    if (n.node->attr<bool>("is_training") || n.inputs.size() != 5 ||
        n.inputs[0] != PlanValue{conv, 0} ||
        n.node->attr_or<std::string>("data_format", "NHWC") != "NHWC") {
      return;
    }
    bool constant = ConstantOf(plan_.nodes[conv].inputs[1]) != nullptr;
    for (int k = 1; k < 5; ++k) {
      const PlanValue& v = n.inputs[k];
      if (!IsInvariant(v) || plan_.nodes[v.node].type(v.output) != DT_FLOAT ||
          ShapeOf(v) != Shape({channels}))
        return;
      constant = constant && ConstantOf(v) != nullptr;
    }
    if (constant) return;  // fuse_epilogues.cc folds it, with less rounding
    const PlanValue scale = n.inputs[1], offset = n.inputs[2], mean = n.inputs[3],
                    variance = n.inputs[4];
    const Shape shape({channels});
    const PlanValue epsilon =
        AddConstant(Tensor::Scalar(plan_.nodes[id].node->attr<float>("epsilon")));
    const PlanValue deviation = Add("Rsqrt", {Add("AddV2", {variance, epsilon}, shape)}, shape);
    const PlanValue factor = Add("Mul", {scale, deviation}, shape);
    const PlanValue shift = Add("Sub", {offset, Add("Mul", {mean, factor}, shape)}, shape);
    ScaleFilter(conv, factor);
    const Node* const sum = NodeBuilder(internal_graph(), "AddV2")
                                .Name(plan_.nodes[id].node->name())
                                .Input(MakePlaceholder(DT_FLOAT))
                                .Input(MakePlaceholder(DT_FLOAT))
                                .Build();
    const Shape result = plan_.nodes[conv].shapes[0];
    if (Fusion::Replace(id, *sum, {{conv, 0}, shift})) plan_.nodes[id].shapes = {result};
  }

  void FollowReplacement(PlanValue& v) const {
    for (auto it = replaced_by_.find(v.node); it != replaced_by_.end();
         it = replaced_by_.find(v.node))
      v = it->second;
  }

  // ---- the cached node

  // If something was `folded` into filters, the values are cached whatever they cost.
  bool CacheValues(bool folded) {
    const int count = static_cast<int>(plan_.nodes.size());
    std::vector<bool> needed_outside(count, false);  // by a node that is not step-invariant
    const auto need = [&](const PlanValue& v) {
      if (v.node >= 0) needed_outside[v.node] = true;
    };
    for (const PlanNode& n : plan_.nodes) {
      if (IsCached(n)) continue;
      for (const PlanValue& v : n.inputs) need(v);
    }
    for (const PlanValue& v : plan_.fetches) need(v);
    for (const PlanGraph::Carry& c : plan_.carries) need(c.next);

    std::vector<int> results, nodes;
    std::vector<bool> inside(count, false);
    for (int id = 0; id < count; ++id) {
      if (IsCached(plan_.nodes[id]) && needed_outside[id]) {
        results.push_back(id);
        Collect(id, &inside, &nodes);
      }
    }
    double cost_ns = 0;
    for (const int id : nodes) cost_ns += plan_.nodes[id].cost_ns;
    if (results.empty() || (!folded && cost_ns < kMinCostNs)) return false;
    return ReplaceNodes(results, nodes);
  }

  static bool IsCached(const PlanNode& n) {
    return n.step_invariant && n.kind == PlanNode::Kind::kOp && n.runs();
  }

  // Collects the node and the cached nodes that it depends on, in topological order.
  void Collect(int id, std::vector<bool>* inside, std::vector<int>* nodes) const {
    std::vector<std::pair<int, size_t>> stack = {{id, 0}};
    if ((*inside)[id]) return;
    (*inside)[id] = true;
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      const PlanNode& n = plan_.nodes[node];
      if (next == n.inputs.size()) {
        nodes->push_back(node);
        stack.pop_back();
        continue;
      }
      const int input = n.inputs[next++].node;
      if (IsCached(plan_.nodes[input]) && !(*inside)[input]) {
        (*inside)[input] = true;
        stack.push_back({input, 0});
      }
    }
  }

  // True if one of the arguments depends on one of the results.
  bool WouldCreateCycle(absl::Span<const PlanValue> args, absl::Span<const int> results) const {
    std::vector<bool> visited(plan_.nodes.size(), false), is_result(plan_.nodes.size(), false);
    for (const int id : results) is_result[id] = true;
    std::vector<int> stack;
    const auto visit = [&](int node) {
      if (!visited[node]) stack.push_back(node);
      visited[node] = true;
    };
    for (const PlanValue& v : args) visit(v.node);
    while (!stack.empty()) {
      const int node = stack.back();
      stack.pop_back();
      if (is_result[node]) return true;
      for (const PlanValue& v : plan_.nodes[node].inputs) visit(v.node);
      for (const int control : plan_.nodes[node].controls) visit(control);
    }
    return false;
  }

  bool ReplaceNodes(const std::vector<int>& results, const std::vector<int>& nodes) {
    Subplan inner(env_);
    std::map<std::pair<int, int>, PlanValue> mapped;
    absl::InlinedVector<PlanValue, 3> fed;
    std::vector<Shape> feed_shapes;
    SubplanSignature signature{.op = CachedSubplan::Def().op,
                               .name = plan_.nodes[results.back()].node->name()};
    for (const int id : nodes) {
      const PlanNode& outer = plan_.nodes[id];
      absl::InlinedVector<PlanValue, 3> inputs;
      for (const PlanValue& v : outer.inputs) {
        auto [it, is_new] = mapped.try_emplace({v.node, v.output});
        if (const Tensor* const constant = ConstantOf(v); is_new && constant != nullptr) {
          it->second = inner.AddConstant(*constant, plan_.nodes[v.node].node->name());
        } else if (is_new) {
          const DataType type = BaseType(plan_.nodes[v.node].type(v.output));
          it->second = inner.AddFeed(type, true);
          fed.push_back(v);
          feed_shapes.push_back(ShapeOf(v));
          signature.feeds.push_back(type);
        }
        inputs.push_back(it->second);
      }
      const int node = inner.AddNode(outer, std::move(inputs));
      for (int k = 0; k < outer.num_outputs(); ++k) mapped[{id, k}] = {node, k};
      signature.fused_ops.push_back(outer.node->op_name());
    }
    if (WouldCreateCycle(fed, results)) return false;
    PlanNode cached_node;
    std::map<int, int> first;  // by result: its first output of the new node
    for (const int id : results) {
      const PlanNode& n = plan_.nodes[id];
      first[id] = static_cast<int>(signature.results.size());
      for (int k = 0; k < n.num_outputs(); ++k) {
        inner.AddFetch(mapped.at({id, k}));
        signature.results.push_back(BaseType(n.type(k)));
        cached_node.shapes.push_back(n.shapes[k]);
      }
    }
    absl::StatusOr<PlanGraph> plan = inner.Take();
    if (!plan.ok()) return false;
    const absl::StatusOr<std::shared_ptr<CachedSubplan>> step =
        CachedSubplan::Make(*std::move(plan), feed_shapes, env_, signature);
    if (!step.ok()) return false;

    cached_node.node = &(*step)->node();
    cached_node.device = env_.devices[0].get();
    cached_node.def = &CachedSubplan::Def();
    cached_node.step_invariant = true;
    cached_node.inputs = std::move(fed);
    cached_node.kernel = Kernel([step = *step](KernelContext& c) { return step->Run(c); });
    const int id = plan_.Insert(std::move(cached_node));
    for (const int node : nodes) plan_.Fuse(node);
    const PlanUses before(plan_);
    for (const int result : results) {
      for (const PlanUse& use : before.Of(result)) {
        // A kernel made by Specialize did not know that its input is step-invariant.
        if (use.is_input() && !plan_.nodes[use.user].kernel.is_async())
          plan_.nodes[use.user].kernel = Kernel();
      }
    }
    plan_.ForEachUse([&](PlanValue& v) {
      const auto it = first.find(v.node);
      if (it != first.end()) v = {id, it->second + v.output};
    });
    return true;
  }

  std::map<int, PlanValue> replaced_by_;  // by removed node: the value that replaces its own
};

}  // namespace

absl::Status CacheStepInvariants(PlanGraph& plan, const PlanEnvironment& env) {
  return StepInvariantCacher(plan, env).Run() ? SortTopologically(plan) : absl::OkStatus();
}

}  // namespace weir
