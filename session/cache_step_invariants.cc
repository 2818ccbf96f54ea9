#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "weir/core/scope.h"
#include "weir/session/fusion.h"
#include "weir/session/cached_subplan.h"

// In inference weights are the same step after step, though a graph that reads variables, as those
// of SavedModels do, cannot say so. What is computed from nothing but such lasting values
// (PlanGraph::IsStepInvariant) need not be computed in each step: batch norms' factors from their
// variances, transposed or concatenated weights. Here all of it becomes one node, _CachedSubplan,
// which computes it once, and again when one of the values has changed (cached_subplan.h). What it gives
// is step-invariant too, so that products keep it packed.
//
// Before, more is made to depend on lasting values alone. A convolution whose result is multiplied
// by a vector of channels, as a batch norm does that is spelled out,
//
//   Mul(Conv2D(x, filter), factor)  =  Conv2D(x, Mul(filter, factor))
//
// has no multiplication left to do where filter and factor last (Jacob et al. 2018, section 3.2).
// FusedBatchNorm in inference is spelled out for this, with a vector to add. Products of constants
// alone are left to fuse_epilogues.cc, but for those factors, which it does not know. Results differ
// by the rounding of filters.
//
// A value is kept if it is step-invariant, is no constant and no variable's own, and a node needs it that does
// not last; none of nodes that wait, have effects, may be dead, or are in a loop. Large ones
// (kLargest) are computed in each step as before, since a gather from a large table is cheap, and
// the table is not.
namespace weir {

namespace {

constexpr int64_t kLargest = int64_t{64} << 20;  // bytes of a value
constexpr double kWorthIt = 2000;                // nanoseconds of all nodes, to look at the values

class StepInvariants : public Fusion {
 public:
  using Fusion::Fusion;

  // True if the plan has changed.
  bool Run() {
    if (plan_.writes_state) return false;
    for (PlanNode& n : plan_.nodes) n.step_invariant = n.step_invariant || DependsOnLasting(n);
    const size_t before = plan_.nodes.size();
    if (env_.enabled("fusion")) FoldFactors();
    const bool folded = plan_.nodes.size() != before;
    if (Keep(folded)) return true;
    for (PlanNode& n : plan_.nodes) n.step_invariant = n.step_invariant && n.kind != PlanNode::Kind::kOp;
    return folded;
  }

 private:
  static bool IsTied(const PlanNode& n) {
    return n.may_be_dead || n.loop >= 0 || !n.controls.empty();
  }

  // Kept, if somebody needs it. The nodes before have been looked at.
  bool DependsOnLasting(const PlanNode& n) const {
    if (!IsFusable(n) || IsTied(n) || !n.kernel.run() || n.Is("Identity")) return false;
    for (int k = 0; k < n.num_outputs(); ++k) {
      const Shape& shape = n.shapes[k];
      if (!IsPlain(n.type(k)) || IsRef(n.type(k)) || !shape.IsFullyDefined()) return false;
      if (shape.num_elements() > kLargest / static_cast<int64_t>(ElementSize(n.type(k))))
        return false;
    }
    const auto step_invariant = [&](const PlanValue& v) { return Lasts(v); };
    const auto is_constant = [&](const PlanValue& v) { return ConstantOf(v) != nullptr; };
    return absl::c_all_of(n.inputs, step_invariant) && !absl::c_all_of(n.inputs, is_constant);
  }

  // And waits for nothing that may wait for what is kept.
  bool Lasts(const PlanValue& v) const {
    const PlanNode& maker = plan_.nodes[v.node];
    if (!IsPlain(maker.type(v.output)) || IsRef(maker.type(v.output)) ||
        !ShapeOf(v).IsFullyDefined() || maker.may_be_dead) {
      return false;
    }
    if (ConstantOf(v) != nullptr) return true;
    if (!plan_.IsStepInvariant(v) || IsTied(maker)) return false;
    return !maker.Is("Identity") || Lasts(maker.inputs[0]);
  }

  // ---- factors

  void FoldFactors() {
    FindUsers();
    const size_t count = plan_.nodes.size();
    for (size_t id = 0; id < count; ++id) {
      const PlanNode& n = plan_.nodes[id];
      const std::string& op = n.node->op_name();
      if ((op == "Conv2D" || op == "DepthwiseConv2dNative") && MayTake(n) && Lasts(n.inputs[1]) &&
          n.node->attr_or<std::string>("data_format", "NHWC") == "NHWC" &&
          n.shapes[0].IsFullyDefined() && n.shapes[0].rank() == 4) {
        FoldInto(static_cast<int>(id));
      }
    }
    for (size_t id = 0; id < count; ++id) {
      PlanNode& n = plan_.nodes[id];
      for (PlanValue& v : n.inputs) Follow(v);
    }
    for (PlanGraph::Carry& c : plan_.carries) Follow(c.next);
  }

  bool MayTake(const PlanNode& n) const {
    return IsFusable(n) && !IsTied(n) && n.type(0) == DT_FLOAT && !n.step_invariant;
  }

  void FoldInto(int conv) {
    int last = conv;
    while (users_[last].size() == 1 && users_[last][0] >= 0 && !uses_others_[last]) {
      const int id = users_[last][0];
      const PlanNode& n = plan_.nodes[id];
      const std::string& op = n.node->op_name();
      if (!MayTake(n) || uses_others_[id]) return;
      if (op == "Mul" && n.inputs.size() == 2) {
        // Of what is fetched, or waited for, its own value must be there.
        if (users_[id].empty() || users_[id][0] < 0 || !IsOfChannels(n, last)) return;
        Scale(conv, OtherInput(n, last));
        plan_.nodes[id].Remove();
        passed_[id] = {conv, 0};
      } else if (op == "Add" || op == "AddV2") {
        if (IsOfChannels(n, last)) MakeBias(id, last);
        return;
      } else if (n.Is("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")) {
        if (last == conv) SpellOut(id, conv);
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

  // What the node takes besides the value of `last` is a vector of channels, and is step-invariant.
  bool IsOfChannels(const PlanNode& n, int last) const {
    const PlanValue& other = OtherInput(n, last);
    return other.node != last && Lasts(other) &&
           HasOnlyDims(ShapeOf(other), plan_.nodes[last].shapes[0], 3, 4);
  }

  // A node that is step-invariant, and so will be kept.
  PlanValue Add(absl::string_view op, absl::Span<const PlanValue> inputs, const Shape& shape) {
    NodeBuilder builder(made(), op);
    builder.Name("kept/" + std::string(op));
    for (const PlanValue& v : inputs)
      builder.Input(MakePlaceholder(BaseType(plan_.nodes[v.node].type(v.output))));
    return AddMade(*builder.Build(), inputs, shape);
  }
  PlanValue AddConstant(const Tensor& value) {
    const PlanValue v = Fusion::AddConstant(*MakeConst("kept/Const", value), value);
    plan_.nodes[v.node].step_invariant = true;
    return v;
  }
  PlanValue AddMade(const Node& node, absl::Span<const PlanValue> inputs, const Shape& shape) {
    PlanNode n;
    n.node = &node;
    n.device = env_.devices[0].get();
    n.def = env_.kernels.Find(node, kCpu);
    n.inputs.assign(inputs.begin(), inputs.end());
    n.shapes = {shape};
    n.step_invariant = true;
    const int id = Fusion::Add(std::move(n));
    Renew(id);
    return {id, 0};
  }
  // Makes the kernel for the inputs that the node has now.
  void Renew(int id) {
    PlanNode& n = plan_.nodes[id];
    std::vector<Shape> shapes;
    for (const PlanValue& v : n.inputs) shapes.push_back(ShapeOf(v));
    const PlanGraph::Flags lasting = plan_.StepInvariantsOf(n.inputs);
    const KernelInit init = env_.InitFor(*n.node, *n.device, shapes, lasting);
    absl::StatusOr<Kernel> kernel = n.def->make(init);
    if (kernel.ok()) n.kernel = n.device->Wrap(init, *std::move(kernel));
  }

  PlanValue Reshaped(PlanValue v, const Shape& shape) {
    if (ShapeOf(v) == shape) return v;
    Tensor dims(DT_INT32, Shape({shape.rank()}));
    for (int d = 0; d < shape.rank(); ++d)
      dims.data<int32_t>()[d] = static_cast<int32_t>(shape.dim(d));
    return Add("Reshape", {v, AddConstant(dims)}, shape);
  }

  // The filter of [height, width, in, out], or [height, width, in, multiplier] with a channel for
  // each pair of the last two.
  void Scale(int conv, PlanValue factor) {
    const PlanValue filter = plan_.nodes[conv].inputs[1];
    const Shape shape = ShapeOf(filter);
    const bool depthwise = plan_.nodes[conv].node->op_name() != "Conv2D";
    const Shape last = depthwise ? Shape({shape.dim(2), shape.dim(3)}) : Shape({shape.dim(3)});
    const PlanValue vector = Reshaped(factor, last);
    const PlanValue scaled = Add("Mul", {filter, vector}, shape);
    plan_.nodes[conv].inputs[1] = scaled;
    Renew(conv);
  }

  // As a vector it is a bias to fuse_epilogues.cc.
  void MakeBias(int id, int last) {
    const PlanNode& n = plan_.nodes[id];
    const int k = n.inputs[0].node == last ? 1 : 0;
    const PlanValue vector = Reshaped(n.inputs[k], Shape({plan_.nodes[last].shapes[0].dim(3)}));
    plan_.nodes[id].inputs[k] = vector;
    Renew(id);
  }

  void SpellOut(int id, int conv) {
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
      if (!Lasts(v) || plan_.nodes[v.node].type(v.output) != DT_FLOAT ||
          ShapeOf(v) != Shape({channels}))
        return;
      constant = constant && ConstantOf(v) != nullptr;
    }
    if (constant) return;  // fuse_epilogues.cc does it, with less rounding
    const PlanValue scale = n.inputs[1], offset = n.inputs[2], mean = n.inputs[3],
                    variance = n.inputs[4];
    const Shape shape({channels});
    const PlanValue epsilon =
        AddConstant(Tensor::Scalar(plan_.nodes[id].node->attr<float>("epsilon")));
    const PlanValue deviation = Add("Rsqrt", {Add("AddV2", {variance, epsilon}, shape)}, shape);
    const PlanValue factor = Add("Mul", {scale, deviation}, shape);
    const PlanValue shift = Add("Sub", {offset, Add("Mul", {mean, factor}, shape)}, shape);
    Scale(conv, factor);
    const Node* const sum = NodeBuilder(made(), "AddV2")
                                .Name(plan_.nodes[id].node->name())
                                .Input(MakePlaceholder(DT_FLOAT))
                                .Input(MakePlaceholder(DT_FLOAT))
                                .Build();
    const Shape result = plan_.nodes[conv].shapes[0];
    if (Fusion::Replace(id, *sum, {{conv, 0}, shift})) plan_.nodes[id].shapes = {result};
  }

  void Follow(PlanValue& v) const {
    for (auto it = passed_.find(v.node); it != passed_.end(); it = passed_.find(v.node))
      v = it->second;
  }

  // ---- the node that keeps

  // What has been folded into filters is to be kept in any case.
  bool Keep(bool folded) {
    const int count = static_cast<int>(plan_.nodes.size());
    std::vector<bool> needed(count, false);  // by one that does not last
    const auto need = [&](const PlanValue& v) {
      if (v.node >= 0) needed[v.node] = true;
    };
    for (const PlanNode& n : plan_.nodes) {
      if (IsKept(n)) continue;
      for (const PlanValue& v : n.inputs) need(v);
    }
    for (const PlanValue& v : plan_.fetches) need(v);
    for (const PlanGraph::Carry& c : plan_.carries) need(c.next);

    std::vector<int> results, nodes;
    std::vector<bool> inside(count, false);
    for (int id = 0; id < count; ++id) {
      if (IsKept(plan_.nodes[id]) && needed[id]) {
        results.push_back(id);
        Collect(id, &inside, &nodes);
      }
    }
    double cost_ns = 0;
    for (const int id : nodes) cost_ns += plan_.nodes[id].cost_ns;
    if (results.empty() || (!folded && cost_ns < kWorthIt)) return false;
    return ReplaceAll(results, nodes);
  }

  static bool IsKept(const PlanNode& n) {
    return n.step_invariant && n.kind == PlanNode::Kind::kOp && n.runs();
  }

  // The node and those before it that are kept too, in topological order.
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
      if (IsKept(plan_.nodes[input]) && !(*inside)[input]) {
        (*inside)[input] = true;
        stack.push_back({input, 0});
      }
    }
  }

  // A node that takes one of the results is there before one of the arguments.
  bool WaitsForItself(absl::Span<const PlanValue> args, absl::Span<const int> results) const {
    std::vector<bool> seen(plan_.nodes.size(), false), is_result(plan_.nodes.size(), false);
    for (const int id : results) is_result[id] = true;
    std::vector<int> stack;
    const auto visit = [&](int node) {
      if (!seen[node]) stack.push_back(node);
      seen[node] = true;
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

  bool ReplaceAll(const std::vector<int>& results, const std::vector<int>& nodes) {
    Subplan inner(env_);
    std::map<std::pair<int, int>, PlanValue> there;
    absl::InlinedVector<PlanValue, 3> fed;
    std::vector<Shape> feed_shapes;
    SubplanSignature face{.op = CachedSubplan::Def().op, .name = plan_.nodes[results.back()].node->name()};
    for (const int id : nodes) {
      const PlanNode& outer = plan_.nodes[id];
      absl::InlinedVector<PlanValue, 3> inputs;
      for (const PlanValue& v : outer.inputs) {
        auto [it, is_new] = there.try_emplace({v.node, v.output});
        if (const Tensor* const constant = ConstantOf(v); is_new && constant != nullptr) {
          it->second = inner.AddConstant(*constant, plan_.nodes[v.node].node->name());
        } else if (is_new) {
          const DataType type = BaseType(plan_.nodes[v.node].type(v.output));
          it->second = inner.AddFeed(type, true);
          fed.push_back(v);
          feed_shapes.push_back(ShapeOf(v));
          face.feeds.push_back(type);
        }
        inputs.push_back(it->second);
      }
      const int node = inner.AddNode(outer, std::move(inputs));
      for (int k = 0; k < outer.num_outputs(); ++k) there[{id, k}] = {node, k};
      face.fused_ops.push_back(outer.node->op_name());
    }
    if (WaitsForItself(fed, results)) return false;
    PlanNode kept;
    std::map<int, int> first;  // by result: its first output of the new node
    for (const int id : results) {
      const PlanNode& n = plan_.nodes[id];
      first[id] = static_cast<int>(face.results.size());
      for (int k = 0; k < n.num_outputs(); ++k) {
        inner.AddFetch(there.at({id, k}));
        face.results.push_back(BaseType(n.type(k)));
        kept.shapes.push_back(n.shapes[k]);
      }
    }
    absl::StatusOr<PlanGraph> plan = inner.Take();
    if (!plan.ok()) return false;
    const absl::StatusOr<std::shared_ptr<CachedSubplan>> step =
        CachedSubplan::Make(*std::move(plan), feed_shapes, env_, face);
    if (!step.ok()) return false;

    kept.node = &(*step)->node();
    kept.device = env_.devices[0].get();
    kept.def = &CachedSubplan::Def();
    kept.step_invariant = true;
    kept.inputs = std::move(fed);
    kept.kernel = Kernel([step = *step](KernelContext& c) { return step->Run(c); });
    const int id = static_cast<int>(plan_.nodes.size());
    plan_.nodes.push_back(std::move(kept));
    for (const int node : nodes) plan_.nodes[node].Remove();
    const auto take = [&](PlanValue& v) {
      const auto it = first.find(v.node);
      if (it == first.end()) return false;
      v = {id, it->second + v.output};
      return true;
    };
    for (int user = 0; user < id; ++user) {
      PlanNode& n = plan_.nodes[user];
      bool changed = false;
      for (PlanValue& v : n.inputs) changed = take(v) || changed;
      if (changed && n.kind == PlanNode::Kind::kOp && !n.kernel.is_async()) Renew(user);
    }
    for (PlanValue& v : plan_.fetches) take(v);
    for (PlanGraph::Carry& c : plan_.carries) take(c.next);
    return true;
  }

  std::map<int, PlanValue> passed_;  // by node that is left out: the value in its place
};

}  // namespace

absl::Status CacheStepInvariants(PlanGraph& plan, const PlanEnvironment& env) {
  return StepInvariants(plan, env).Run() ? SortTopologically(plan) : absl::OkStatus();
}

}  // namespace weir
