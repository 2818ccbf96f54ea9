#include <algorithm>
#include <new>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "weir/core/exception.h"
#include "weir/core/shape_context.h"
#include "weir/session/disjoint_sets.h"
#include "weir/session/passes.h"
#include "weir/session/specialize.h"

// Specialization for the shapes of the feeds: they determine most shapes, and with them the values
// of the small integer ops that compute shapes (Shape, Pack, StridedSlice, BroadcastGradientArgs in
// every gradient). One walk in topological order infers each node's shapes, creates its kernel,
// and, if all its inputs are known, evaluates it: constant folding is not a separate pass but
// happens to every node whose inputs are constant.
//
// Constants are host values here, whatever the device of the node, and a node of an accelerator is
// folded with the CPU's kernel; Schedule uploads the constants that kernels of an accelerator need,
// once. A copy of a constant is the constant.
//
// A loop-carried value is assumed to keep its initial shape. If it does not, the dimensions that
// change are assumed to be unknown, and the walk is repeated.
//
// A value popped from a stack, or read from an array or a list, is one of the values that were
// stored there. If these have a common shape, the walks are repeated once more with it: without it,
// no shapes would be known in a loop over an array, nor in a loop that pops the values of another
// loop's iterations, as gradients do.
//
// A kernel is also told which of its inputs are step-invariant, so that it may cache what it
// derives from them, such as a filter packed for oneDNN. The memory of a constant or a variable is
// copy-on-write: its owner does not write to it while it is shared. Fed memory may be overwritten
// between steps. In a step that writes variables they do not count as step-invariant: such a step
// mostly trains, and what it derives from a weight is used once. Neither do variables that are
// passed to a function: another call may pass others, and the caller may train.
//
// Large values that are broadcast from small ones, such as the zeros of an optimizer's slot
// variables, are not folded if they are only used in assignments: the variable stores them, and the
// plan would hold a second copy for the lifetime of the session.
//
// A node is not folded if it may be dead, has state, or has a control edge. An error of a kernel
// during folding is not reported here: the node stays, and reports it when (and only if) it runs.
// The same holds for an error of a shape function: the kernel's own check reports it.
namespace weir {

namespace {

constexpr size_t kMaxFoldedBytes = size_t{10} << 20;
// Size from which broadcast values are not folded, and how many times as large as their inputs they
// have to be.
constexpr size_t kLargeBytes = size_t{64} << 10, kSpreadFactor = 16;
// The host time to launch a kernel on a stream, however long it runs there.
constexpr double kLaunchNs = 5e3;

// Provides the plan's constants to shape functions instead of the graph's.
class PlanValues : public ShapeContext::Values {
 public:
  // `trusts_graph`: the values that the graph knows hold in this step too.
  PlanValues(const PlanGraph& plan, bool trusts_graph) : plan_(plan), trusts_graph_(trusts_graph) {}
  void set_current(const PlanNode* node) { current_ = node; }

  const Tensor* value(const Node&, int i) override {
    const PlanValue& v = current_->inputs[i];
    const PlanNode& n = plan_.nodes[v.node];
    if (n.is_constant(v.output)) return &n.constants[v.output];
    // A constant with control edges, as Python adds to a loop's constants, or one that may be dead.
    return n.Is("Const") && n.kernel.is_constant() ? &n.kernel.constant() : nullptr;
  }
  Shape value_as_shape(const Node& node, int i) override {
    const Tensor* t = value(node, i);
    if (t == nullptr)
      return trusts_graph_ ? GraphValues().value_as_shape(node, i) : Shape::UnknownRank();
    if (!IsInteger(t->dtype()) || t->num_elements() > Shape::kMaxRank) return Shape::UnknownRank();
    std::vector<int64_t> dims(t->num_elements());
    for (size_t k = 0; k < dims.size(); ++k)
      dims[k] = std::max<int64_t>(-1, t->IntAt(static_cast<int64_t>(k)));
    return Shape(dims);
  }

 private:
  const PlanGraph& plan_;
  const bool trusts_graph_;
  const PlanNode* current_ = nullptr;
};

// The shapes in the graph are derived from values that it knows, such as the target shape of a
// Reshape. If such a value is fed instead, they may be wrong.
bool FeedsPlaceholdersOnly(const PlanGraph& plan) {
  return absl::c_all_of(plan.feeds, [&](const auto& f) {
    if (f.node < 0) return true;
    const PlanNode& feed = plan.nodes[f.node];
    const std::string& op = feed.node->op_name();
    return op == "_Arg" || absl::StartsWith(op, "Placeholder") || !IsPlain(feed.type(0));
  });
}

class Specializer {
 public:
  Specializer(PlanGraph& plan, absl::Span<const Shape> feed_shapes, const PlanEnvironment& env)
      : plan_(plan),
        env_(env),
        trusts_graph_(FeedsPlaceholdersOnly(plan)),
        values_(plan, trusts_graph_),
        fold_(env.enabled("constant_folding")) {
    for (size_t i = 0; i < plan.feeds.size(); ++i) {
      if (plan.feeds[i].node < 0) continue;
      PlanNode& feed = plan.nodes[plan.feeds[i].node];
      const bool is_handle = feed.type(0) == DT_RESOURCE;
      feed.shapes = {is_handle ? Shape() : feed_shapes[i]};
      if (is_handle) fed_handles_[plan.feeds[i].node].shape = feed_shapes[i];
    }
    step_.pool = &env.pool;
    step_.resources = &env.resources;
  }

  absl::Status Run() {
    // A value read from an array may be pushed onto a stack.
    constexpr int kMaxTimes = 3;
    WEIR_RETURN_IF_ERROR(WalkToFixpoint());
    for (int time = 1; time < kMaxTimes; ++time) {
      const bool more = InferPoppedShapes();
      if (!InferListShapes() && !more) break;
      WEIR_RETURN_IF_ERROR(WalkToFixpoint());
    }
    return absl::OkStatus();
  }

  // Loops that are not structured are excluded: in them the control edge makes the constant
  // available in each iteration.
  ControlledConstants CollectControlled() {
    ControlledConstants controlled;
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& n = plan_.nodes[i];
      if (n.kind != PlanNode::Kind::kOp || n.may_be_dead || n.is_constant(0)) continue;
      if (n.loop >= 0 && !plan_.loops[n.loop].is_structured()) continue;
      if (n.kernel.is_constant()) {
        controlled[static_cast<int>(i)] = {n.kernel.constant()};
      } else if (fold_ && !controlled.empty() && CanFold(n, &controlled)) {
        std::vector<Tensor> values = Fold(n, &controlled);
        if (!values.empty()) controlled[static_cast<int>(i)] = std::move(values);
      }
    }
    return controlled;
  }

 private:
  absl::Status WalkToFixpoint() {
    for (const PlanGraph::Carry& c : plan_.carries) plan_.nodes[c.carry].shapes.clear();
    variable_shapes_.clear();
    for (int round = 0; round == 0 || !CarriedShapesHold(round); ++round)
      WEIR_RETURN_IF_ERROR(Walk());
    return absl::OkStatus();
  }

  absl::Status Walk() {
    for (PlanNode& n : plan_.nodes) {
      n.constants.clear();
      if (n.kind == PlanNode::Kind::kOp) {
        WEIR_RETURN_IF_ERROR(SpecializeOp(n));
      } else if (n.kind != PlanNode::Kind::kFeed && n.kind != PlanNode::Kind::kCarry) {
        const PlanNode& source = plan_.nodes[n.inputs[0].node];
        const int output = n.inputs[0].output;
        n.shapes = {source.shapes[output]};
        if (n.kind == PlanNode::Kind::kCopy && source.is_constant(output))
          n.constants = {source.constants[output]};
      }
    }
    return absl::OkStatus();
  }

  // Returns the dimensions that `a` and `b` have in common.
  static Shape CommonShape(const Shape& a, const Shape& b) {
    if (!a.has_rank() || a.rank() != b.rank()) return Shape::UnknownRank();
    Shape common = a;
    for (int d = 0; d < a.rank(); ++d) {
      if (a.dim(d) != b.dim(d)) common.set_dim(d, Shape::kUnknown);
    }
    return common;
  }

  // The shape of a row: of `all` without dimension 0.
  static Shape RowShape(const Shape& all) {
    return all.has_rank() && all.rank() > 0 ? all.Sub(1) : Shape::UnknownRank();
  }

  // Returns the shape of the value that node `n` stores in the stack or array whose handle is its
  // input `k`; nothing if it stores none there.
  std::optional<Shape> StoredShape(const PlanNode& n, size_t k) const {
    const auto shape_of = [&](const PlanValue& v) { return plan_.nodes[v.node].shapes[v.output]; };
    const ContainerUse& use = n.traits().container;
    if (use.type == ContainerUse::Type::kList) return Shape::UnknownRank();
    if (k == 0 && use.kind == ContainerUse::Kind::kPuts) return shape_of(n.inputs[use.value]);
    if (k == 0 && use.kind == ContainerUse::Kind::kPutsRows)
      return RowShape(shape_of(n.inputs[use.value]));
    if (use.kind == ContainerUse::Kind::kTakes || use.kind == ContainerUse::Kind::kObserves)
      return std::nullopt;
    return Shape::UnknownRank();
  }

  // Infers the shapes of values that are popped from stacks or read from arrays, if their handles
  // are used only by nodes that store and load values. Returns false if nothing new is known.
  bool InferPoppedShapes() {
    const auto makes_handle = [](const PlanNode& n) {
      return n.traits().container.kind == ContainerUse::Kind::kMakes && n.num_outputs() > 0 &&
             n.type(0) == DT_RESOURCE;
    };
    if (absl::c_none_of(plan_.nodes, makes_handle)) return false;
    std::vector<int> created_by(plan_.nodes.size(), -1);  // by node whose output is such a handle
    absl::flat_hash_map<int, std::optional<Shape>>
        put;  // by the node that creates the handle; empty: nothing stored
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& n = plan_.nodes[i];
      if (makes_handle(n)) created_by[i] = static_cast<int>(i);
      for (size_t k = 0; k < n.inputs.size(); ++k) {
        const PlanValue& v = n.inputs[k];
        const int maker = created_by[v.node];
        if (maker < 0 || plan_.nodes[v.node].type(v.output) != DT_RESOURCE) continue;
        if (n.Is(ControlFlow::kEnter) || n.is_identity()) {
          created_by[i] = maker;
        } else if (const std::optional<Shape> one = StoredShape(n, k)) {
          std::optional<Shape>& all = put[maker];
          all = all ? CommonShape(*all, *one) : one;
        }
      }
    }
    bool more = false;
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& n = plan_.nodes[i];
      if (n.traits().container.kind != ContainerUse::Kind::kTakes ||
          plan_.nodes[n.inputs[0].node].type(n.inputs[0].output) != DT_RESOURCE) {
        continue;
      }
      const auto found = put.find(created_by[n.inputs[0].node]);
      if (found != put.end()) more |= RecordPoppedShape(static_cast<int>(i), *found->second);
    }
    return more;
  }

  // Returns true if the shape is new.
  bool RecordPoppedShape(int node, const Shape& shape) {
    if (!shape.has_rank()) return false;
    const auto [known, is_new] = popped_shapes_.try_emplace(node, shape);
    const bool differs = known->second != shape;
    known->second = shape;
    return is_new || differs;
  }

  // Does the same for tensor lists. A list is a value: it contains the values stored in it and in
  // the lists it was derived from through list ops and loop variables. These lists form a group.
  // Nothing is known about a group into which another value flows.
  bool InferListShapes() {
    const auto takes = [](const PlanNode& n) {
      const ContainerUse& use = n.traits().container;
      return use.kind == ContainerUse::Kind::kTakes && use.type == ContainerUse::Type::kList;
    };
    if (absl::c_none_of(plan_.nodes, takes)) return false;
    struct Group {
      bool is_known = true;
      std::optional<Shape> put = {};  // their common shape; empty: none so far
    };
    const int count = static_cast<int>(plan_.nodes.size());
    DisjointSets sets(count);  // of nodes whose output 0 may be a list
    std::vector<Group> groups(plan_.nodes.size());
    const auto group_of = [&](int i) -> Group& { return groups[sets.Find(i)]; };
    const auto put = [&](int i, const Shape& shape) {
      std::optional<Shape>& all = group_of(i).put;
      all = all ? CommonShape(*all, shape) : shape;
    };
    const auto unite = [&](int i, const PlanValue& list) {
      if (list.output != 0) {
        group_of(i).is_known = false;
      } else if (sets.Find(i) != sets.Find(list.node)) {
        const Group joining = group_of(list.node);
        sets.Join(list.node, i);
        group_of(i).is_known &= joining.is_known;
        if (joining.put) put(i, *joining.put);
      }
    };
    for (int i = 0; i < count; ++i) {
      const PlanNode& n = plan_.nodes[i];
      if (n.num_outputs() == 0 || n.type(0) != DT_VARIANT) continue;
      const auto shape_of = [&](size_t k) {
        return plan_.nodes[n.inputs[k].node].shapes[n.inputs[k].output];
      };
      const ContainerUse& use = n.traits().container;
      const bool is_list_op =
          use.kind != ContainerUse::Kind::kNone && use.type == ContainerUse::Type::kList;
      if (is_list_op && use.kind == ContainerUse::Kind::kPutsRows) {
        put(i, RowShape(shape_of(use.value)));
      } else if (is_list_op && use.kind == ContainerUse::Kind::kTakes && n.num_outputs() == 1) {
        group_of(i).is_known = false;  // an element that is a list itself
      } else if (n.Is(ControlFlow::kEnter) || n.is_identity() ||
                 (is_list_op && use.kind != ContainerUse::Kind::kMakes)) {
        unite(i, n.inputs[0]);
        if (use.kind == ContainerUse::Kind::kPuts) put(i, shape_of(use.value));
      } else if (!is_list_op) {
        group_of(i).is_known = false;
      }
    }
    for (const PlanGraph::Carry& c : plan_.carries) {
      if (plan_.nodes[c.carry].type(0) == DT_VARIANT) unite(c.carry, c.next);
    }
    bool more = false;
    for (int i = 0; i < count; ++i) {
      const PlanNode& n = plan_.nodes[i];
      if (!takes(n) || n.inputs[0].output != 0) continue;
      const Group& group = group_of(n.inputs[0].node);
      if (group.is_known && group.put) more |= RecordPoppedShape(i, *group.put);
    }
    return more;
  }

  // Returns true if the loop-carried values have the assumed shapes. Shapes only become less
  // specific, so this terminates; after a few rounds they become entirely unknown, so that it
  // terminates soon.
  bool CarriedShapesHold(int round) {
    constexpr int kMaxRounds = 4;
    bool hold = true;
    for (const PlanGraph::Carry& c : plan_.carries) {
      Shape& assumed = plan_.nodes[c.carry].shapes[0];
      Shape common = CommonShape(assumed, plan_.nodes[c.next.node].shapes[c.next.output]);
      if (common == assumed) continue;
      assumed = round < kMaxRounds ? std::move(common) : Shape::UnknownRank();
      if (plan_.IsLoopVariable(plan_.nodes[c.carry])) variable_shapes_[c.carry] = assumed;
      hold = false;
    }
    return hold;
  }

  // A loop-carried value initially has the shape of the value that it is merged with.
  void AssumeCarriedShapes(const PlanNode& n) {
    for (const PlanValue& v : n.inputs) {
      PlanNode& carry = plan_.nodes[v.node];
      if (carry.kind != PlanNode::Kind::kCarry || !carry.shapes.empty()) continue;
      carry.shapes = {Shape::UnknownRank()};
      for (const PlanValue& other : n.inputs) {
        if (plan_.nodes[other.node].kind == PlanNode::Kind::kCarry) continue;
        carry.shapes = {plan_.nodes[other.node].shapes[other.output]};
        break;
      }
    }
  }

  absl::Status SpecializeOp(PlanNode& n) {
    absl::InlinedVector<Shape, 2> inputs;
    absl::InlinedVector<const HandleData*, 2> handles;
    AssumeCarriedShapes(n);
    for (const PlanValue& v : n.inputs) {
      const PlanNode& producer = plan_.nodes[v.node];
      inputs.push_back(producer.is_constant(v.output) &&
                               IsPlain(producer.constants[v.output].dtype())
                           ? producer.constants[v.output].shape()
                           : producer.shapes[v.output]);
      handles.push_back(HandleDataOf(v));
    }
    InferShapes(n, inputs, handles);
    if (fold_ && !n.may_be_dead && n.controls.empty() && FoldShapeOf(n, inputs))
      return absl::OkStatus();
    const PlanGraph::Flags step_invariants = plan_.StepInvariantsOf(n.inputs);
    const KernelInit init = env_.InitFor(*n.node, *n.device, inputs, step_invariants);
    absl::StatusOr<Kernel> kernel =
        CatchExceptions("Making the kernel", [&] { return n.def->make(init); });
    if (!kernel.ok()) return Annotate(kernel.status(), n.node->Label());
    n.kernel = n.device->Wrap(init, *std::move(kernel));
    n.cost_ns = n.device->has_stream()   ? kLaunchNs
                : n.def->cost != nullptr ? n.def->cost(init)
                                         : CostByBytes(n, inputs);
    if (n.kernel.is_constant()) {
      if (!n.may_be_dead && n.controls.empty()) n.constants = {n.kernel.constant()};
    } else if (fold_ && CanFold(n)) {
      n.set_constants(Fold(n));
    }
    return absl::OkStatus();
  }

  const HandleData* HandleDataOf(const PlanValue& v) const {
    const PlanNode& n = plan_.nodes[v.node];
    if (n.kind == PlanNode::Kind::kOp || n.kind == PlanNode::Kind::kCarry)
      return n.node->output_handle(v.output);
    const auto fed = fed_handles_.find(v.node);
    return fed == fed_handles_.end() ? nullptr : &fed->second;
  }

  void InferShapes(PlanNode& n, absl::Span<const Shape> inputs,
                   absl::Span<const HandleData* const> handles) {
    n.shapes.clear();
    for (int i = 0; i < n.node->num_outputs(); ++i)
      n.shapes.push_back(trusts_graph_ ? n.node->output_shape(i) : Shape::UnknownRank());
    if (!n.node->op().shape_fn()) return;
    values_.set_current(&n);
    ShapeContext context(*n.node, inputs, handles, values_);
    const auto infer = [&] { return n.node->op().shape_fn()(context); };
    if (!CatchExceptions("The shape function", infer).ok()) return;
    for (int i = 0; i < n.node->num_outputs(); ++i) {
      absl::StatusOr<Shape> merged = n.shapes[i].MergeWith(context.outputs()[i]);
      n.shapes[i] = merged.ok() ? *std::move(merged) : context.outputs()[i];
    }
    if (const auto popped = popped_shapes_.find(IndexOf(n)); popped != popped_shapes_.end()) {
      Shape& shape = n.shapes[n.num_outputs() - 1];
      absl::StatusOr<Shape> merged = shape.MergeWith(popped->second);
      if (merged.ok()) shape = *std::move(merged);
    }
    // The op's own shape function holds for any iteration; this is the shape of the initial value.
    if (!n.is_enter()) return;
    const auto assumed = variable_shapes_.find(IndexOf(n));
    n.shapes[0] =
        assumed == variable_shapes_.end() ? inputs[0] : CommonShape(inputs[0], assumed->second);
  }

  int IndexOf(const PlanNode& n) const { return static_cast<int>(&n - plan_.nodes.data()); }

  static double CostByBytes(const PlanNode& n, absl::Span<const Shape> inputs) {
    constexpr double kNsPerByte = 0.12, kNsPerNode = 50;
    double bytes = 0;
    const auto add = [&](const Shape& shape, DataType type) {
      const int64_t count = shape.num_elements();
      if (count > 0)
        bytes += static_cast<double>(count) * static_cast<double>(ElementSize(BaseType(type)));
    };
    for (size_t i = 0; i < inputs.size(); ++i)
      add(inputs[i], n.node->input_type(static_cast<int>(i)));
    for (int i = 0; i < n.node->num_outputs(); ++i) add(n.shapes[i], n.node->output_type(i));
    return kNsPerNode + kNsPerByte * bytes;
  }

  // Folds Shape, ShapeN, Size and Rank of a tensor whose shape is known: they do not need the
  // tensor.
  bool FoldShapeOf(PlanNode& n, absl::Span<const Shape> inputs) {
    const std::string& op = n.node->op_name();
    const bool shape = op == "Shape" || op == "ShapeN";
    if (!shape && op != "Size" && op != "Rank") return false;
    std::vector<Tensor> results;
    for (const Shape& s : inputs) {
      if (op == "Rank" ? !s.has_rank() : !s.IsFullyDefined()) return false;
      std::vector<int64_t> values =
          shape ? std::vector<int64_t>(s.dims().begin(), s.dims().end())
                : std::vector<int64_t>{op == "Rank" ? s.rank() : s.num_elements()};
      const Shape result = shape ? Shape({s.rank()}) : Shape();
      if (n.node->output_type(0) == DT_INT64) {
        results.push_back(Tensor::Of<int64_t>(result, absl::MakeConstSpan(values)));
        continue;
      }
      for (const int64_t v : values) {
        if (v > INT32_MAX) return false;
      }
      const std::vector<int32_t> narrow(values.begin(), values.end());
      results.push_back(Tensor::Of<int32_t>(result, absl::MakeConstSpan(narrow)));
    }
    n.constants = std::move(results);
    return true;
  }

  static bool CallsFunctions(const Node& node) {
    return node.op().is_function() || absl::c_any_of(node.op().attrs(), [](const AttrSpec& attr) {
             return attr.kind == AttrSpec::Kind::kFunction;
           });
  }

  // Returns whether a node's value is used only in assignments. Computed on first use, since few
  // plans need it.
  bool IsAssigned(int i) {
    if (assigned_.empty()) FindAssigned();
    return assigned_[i];
  }
  void FindAssigned() {
    std::vector<bool> elsewhere(plan_.nodes.size(), false);
    const auto use = [&](const PlanValue& v) {
      if (v.node >= 0) elsewhere[v.node] = true;
    };
    for (const PlanValue& v : plan_.fetches) use(v);
    for (const PlanGraph::Carry& c : plan_.carries) use(c.next);
    for (size_t i = plan_.nodes.size(); i-- > 0;) {
      const PlanNode& n = plan_.nodes[i];
      const bool assigns = n.def != nullptr && !n.def->writes.empty();
      if (!assigns && (elsewhere[i] || n.node->op().stateful())) absl::c_for_each(n.inputs, use);
    }
    elsewhere.flip();
    assigned_ = std::move(elsewhere);
  }

  // Returns the value if it is known, else null. Values of controlled constants are known if
  // `controlled` contains them.
  const Tensor* KnownValue(const PlanValue& v, const ControlledConstants* controlled) const {
    const PlanNode& n = plan_.nodes[v.node];
    if (n.is_constant(v.output)) return &n.constants[v.output];
    if (controlled == nullptr) return nullptr;
    const auto found = controlled->find(v.node);
    return found == controlled->end() ? nullptr : &found->second[v.output];
  }

  // Returns whether the node can be folded. Function calls are not folded: that would compile a
  // plan within a plan.
  bool CanFold(const PlanNode& n, const ControlledConstants* controlled = nullptr) {
    if (n.may_be_dead || !n.controls.empty() || n.node->op().stateful()) return false;
    if (n.traits().effect == Effect::kMutates) return false;
    if (plan_.IsLoopVariable(n) || plan_.EndsLoop(IndexOf(n))) return false;
    if (n.inputs.empty() || n.node->num_outputs() == 0 || !n.def->writes.empty()) return false;
    size_t bytes = 0, given = 0;
    for (const PlanValue& v : n.inputs) {
      const Tensor* const known = KnownValue(v, controlled);
      if (known == nullptr || known->dtype() == DT_RESOURCE) return false;
      given += known->num_bytes();
    }
    if (CallsFunctions(*n.node)) return false;
    for (int i = 0; i < n.node->num_outputs(); ++i) {
      const DataType type = n.node->output_type(i);
      if (IsRef(type) || type == DT_RESOURCE || type == DT_VARIANT) return false;
      const int64_t count = n.shapes[i].num_elements();
      if (count < 0) return false;
      bytes += static_cast<size_t>(count) * ElementSize(type);
    }
    const bool is_spread = bytes > kLargeBytes && bytes / kSpreadFactor > given;
    return bytes <= kMaxFoldedBytes && !(is_spread && IsAssigned(IndexOf(n)));
  }

  // Returns the kernel that computes the node on the CPU; none if there is no such kernel, or it is
  // asynchronous.
  std::optional<Kernel> HostKernel(const PlanNode& n, absl::Span<const Shape> inputs) const {
    if (n.device->is_host()) return n.kernel.run() ? std::optional(n.kernel) : std::nullopt;
    const KernelDef* def = env_.kernels.Find(*n.node, kCpu);
    if (def == nullptr) return std::nullopt;
    absl::StatusOr<Kernel> kernel = def->make(env_.InitFor(*n.node, *env_.devices[0], inputs));
    if (!kernel.ok() || !kernel->run()) return std::nullopt;
    return *std::move(kernel);
  }

  // Returns the node's values; none if its kernel fails, or does not set all outputs.
  std::vector<Tensor> Fold(const PlanNode& n, const ControlledConstants* controlled = nullptr) {
    const int num_inputs = static_cast<int>(n.inputs.size()), num_outputs = n.node->num_outputs();
    std::vector<Tensor> slots(num_inputs + num_outputs);
    std::vector<int32_t> indices(slots.size());
    std::vector<uint8_t> dead(slots.size(), 0);
    std::vector<Shape> input_shapes;
    for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int32_t>(i);
    for (int i = 0; i < num_inputs; ++i) {
      slots[i] = *KnownValue(n.inputs[i], controlled);
      input_shapes.push_back(slots[i].shape());
    }
    const std::optional<Kernel> kernel = HostKernel(n, input_shapes);
    if (!kernel) return {};
    const KernelContext::Binding binding{.slots = slots.data(),
                                         .dead = dead.data(),
                                         .inputs = indices.data(),
                                         .outputs = indices.data() + num_inputs,
                                         .num_inputs = num_inputs,
                                         .num_outputs = num_outputs};
    KernelContext context(*n.node, *env_.devices[0], step_, binding);
    try {
      if (!kernel->run()(context).ok()) return {};
    } catch (const StepCancelled&) {
      throw;  // the cached plan would lack the value
    } catch (...) {
      return {};  // the step reports the error
    }
    for (int i = 0; i < num_outputs; ++i) {
      if (!slots[num_inputs + i].initialized() || dead[num_inputs + i] != 0) return {};
    }
    return {slots.begin() + num_inputs, slots.end()};
  }

  PlanGraph& plan_;
  const PlanEnvironment& env_;
  const bool trusts_graph_;
  PlanValues values_;
  const bool fold_;
  std::vector<bool> assigned_;  // by node; empty until first use
  StepInfo step_;
  absl::flat_hash_map<int, HandleData> fed_handles_;  // by node
  // By node: shapes of structured loops' variables that do not keep their initial shape.
  absl::flat_hash_map<int, Shape> variable_shapes_;
  absl::flat_hash_map<int, Shape>
      popped_shapes_;  // by node that pops or reads a value from a stack, array or list
};

}  // namespace

PlanGraph::Flags PlanGraph::StepInvariantsOf(absl::Span<const PlanValue> inputs) const {
  Flags step_invariants;
  for (const PlanValue& v : inputs) step_invariants.push_back(IsStepInvariant(v));
  return step_invariants;
}

bool PlanGraph::IsStepInvariant(PlanValue value) const {
  // Python puts two or three Identities before a value. The limit avoids following a chain of
  // thousands from each of its nodes.
  constexpr int kMaxIdentities = 64;
  for (int passed = 0; passed < kMaxIdentities; ++passed) {
    const PlanNode& n = nodes[value.node];
    if (n.is_constant(value.output) || n.Is("Const")) return true;
    if (n.kind == PlanNode::Kind::kRead || n.Is(VariableUse::kReads)) {
      // A variable of the graph, or one that a function's arguments name.
      const PlanNode& variable = nodes[n.inputs[0].node];
      return !writes_state &&
             (variable.is_constant(n.inputs[0].output) || variable.kind == PlanNode::Kind::kFeed);
    }
    if (!n.is_identity()) return n.step_invariant;
    value = n.inputs[0];
  }
  return false;
}

absl::Status Specialize(PlanGraph& plan, const PassContext& context) {
  plan.writes_state = absl::c_any_of(
      plan.nodes, [](const PlanNode& n) { return n.def != nullptr && !n.def->writes.empty(); });
  return Specializer(plan, context.feed_shapes, context.env).Run();
}

ControlledConstants FindControlledConstants(PlanGraph& plan, const PassContext& context) {
  return Specializer(plan, context.feed_shapes, context.env).CollectControlled();
}

}  // namespace weir
