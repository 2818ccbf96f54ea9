#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "weir/session/plan.h"

// Redundancy elimination. Graphs, as people and gradient rules write them, compute the same value
// under many names: a variable's read is an Identity, each layer's loss is multiplied by one, the
// same constant occurs in a hundred places and with it the same Reshape. Three optimizations find
// an output that equals another one, each with its own name in SessionOptions::disable:
//
// clang-format off
//   no_ops                            a node forwards its input: Identity, a Cast to the same type, a
//                                     Reshape, Transpose, Slice or Pad that changes nothing, AddN of one
//   algebraic_simplification          x * 1, x / 1, x - 0, not(not x), a Transpose and its inverse, ...
//   common_subexpression_elimination  an earlier node applies the same op to the same inputs
// clang-format on
//
// The pass only replaces the output by the other value in every user and fetch. EliminateDeadNodes
// removes nodes that become unused; a node that is a target or the source of a control edge stays.
// One walk in topological order is sufficient, since a node's inputs are replaced before the node
// is visited, and so equal trees are merged from their leaves.
//
// Results are equal, bit for bit. So x + 0 is not simplified in floating point (it turns -0 into
// 0), and values are merged only if they are stored in the same memory space and neither a control
// edge, nor a branch not taken, nor state distinguishes the two.
namespace weir {

namespace {

constexpr int64_t kMostElements = 4096;      // largest constant that is scanned
constexpr size_t kMostComparedBytes = 1024;  // largest constants that are compared

// ---- constants

template <class T>
bool AllAre(const Tensor& t, double value) {
  return absl::c_all_of(t.flat<T>(), [value](T x) {
    const double v = static_cast<double>(static_cast<float>(x));
    return v == value && !std::signbit(v);
  });
}
template <>
bool AllAre<double>(const Tensor& t, double value) {
  return absl::c_all_of(t.flat<double>(),
                        [value](double x) { return x == value && !std::signbit(x); });
}

// Returns true if every element is this number (a zero: not -0). 1 also represents true.
bool IsAll(const Tensor& t, double value) {
  if (t.num_elements() == 0 || t.num_elements() > kMostElements) return false;
  switch (t.dtype()) {
    case DT_FLOAT:
      return AllAre<float>(t, value);
    case DT_DOUBLE:
      return AllAre<double>(t, value);
    case DT_HALF:
      return AllAre<half>(t, value);
    case DT_BFLOAT16:
      return AllAre<bfloat16>(t, value);
    case DT_BOOL:
      return absl::c_all_of(t.flat<bool>(), [value](bool x) { return x == (value != 0); });
    default:
      break;
  }
  if (!IsInteger(t.dtype())) return false;
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    if (t.IntAt(i) != static_cast<int64_t>(value)) return false;
  }
  return true;
}

size_t BytesOf(const Tensor& t) {
  return static_cast<size_t>(t.num_elements()) * ElementSize(t.dtype());
}

// Returns true if the tensor is small enough to compare, and its bytes are its value.
bool IsComparable(const Tensor& t) {
  return IsPlain(t.dtype()) && t.dtype() != DT_STRING && BytesOf(t) <= kMostComparedBytes;
}

bool SameBytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.raw(), b.raw(), BytesOf(a)) == 0;
}

// ---- rules

class Simplifier {
 public:
  Simplifier(PlanGraph& plan, const PlanEnvironment& env)
      : plan_(plan),
        no_ops_(env.enabled("no_ops")),
        identities_(env.enabled("algebraic_simplification")),
        common_(env.enabled("common_subexpression_elimination")) {}

  void Run() {
    same_.resize(plan_.nodes.size());
    for (size_t id = 0; id < plan_.nodes.size(); ++id) {
      PlanNode& n = plan_.nodes[id];
      for (PlanValue& v : n.inputs) v = Replaced(v);
      if (n.kind != PlanNode::Kind::kOp || !IsValueOp(n)) continue;
      if (common_ && FindTwin(static_cast<int>(id))) continue;
      if (!n.controls.empty() || (n.is_constant(0) && !n.may_be_dead)) continue;
      for (int i = 0; i < n.num_outputs(); ++i) {
        const std::optional<PlanValue> value = Known(n, i);
        if (value && AtSamePlace(n, i, *value)) Replace(static_cast<int>(id), i, *value);
      }
    }
    for (PlanGraph::Carry& c : plan_.carries) c.next = Replaced(c.next);
    for (PlanValue& v : plan_.fetches) v = Replaced(v);
  }

 private:
  // Returns true if the node is a pure function of tensor values.
  static bool IsValueOp(const PlanNode& n) {
    if (n.node->op().stateful() || !n.def->writes.empty() || n.def->accepts_dead) return false;
    if (n.kernel.is_async() || n.is_enter() || n.is_exit() || n.loop != n.value_loop) return false;
    const auto is_value = [](DataType t) { return !IsRef(t) && IsPlain(t); };
    for (int i = 0; i < n.node->num_inputs(); ++i) {
      if (!is_value(n.node->input_type(i))) return false;
    }
    for (int i = 0; i < n.node->num_outputs(); ++i) {
      if (!is_value(n.node->output_type(i))) return false;
    }
    const ControlFlow flow = n.traits().control_flow;
    return n.node->num_outputs() > 0 && flow != ControlFlow::kSwitch &&
           flow != ControlFlow::kNextIteration && flow != ControlFlow::kLoopCond &&
           !n.traits().placeholder;
  }

  PlanValue Replaced(const PlanValue& v) const {
    const auto& outputs = same_[v.node];
    return v.output < static_cast<int>(outputs.size()) && outputs[v.output].node >= 0
               ? outputs[v.output]
               : v;
  }
  void Replace(int id, int output, const PlanValue& value) {
    same_[id].resize(plan_.nodes[id].num_outputs());
    same_[id][output] = value;
  }

  // Returns true if `value` is available to kernels in the same place as the output.
  bool AtSamePlace(const PlanNode& n, int output, const PlanValue& value) const {
    const PlanNode& other = plan_.nodes[value.node];
    // A value that leaves a structured loop is available only after the loop ends, even to users
    // inside that loop (which wait for it in vain).
    const int home = plan_.IsLoopVariable(other) ? other.value_loop : other.loop;
    if (home >= 0 && !plan_.IsInside(n.loop, home)) return false;
    // Errors of a read name the node for which it was inserted.
    if (other.kind == PlanNode::Kind::kRead) return false;
    if (other.kind == PlanNode::Kind::kFeed || other.kind == PlanNode::Kind::kCarry)
      return n.device->is_host();
    return other.device == n.device &&
           other.is_on_accelerator(value.output) == n.is_on_accelerator(output);
  }

  const Shape& ShapeOf(const PlanValue& v) const { return plan_.nodes[v.node].shapes[v.output]; }
  const Tensor* ConstantOf(const PlanValue& v) const {
    const PlanNode& n = plan_.nodes[v.node];
    return n.is_constant(v.output) ? &n.constants[v.output] : nullptr;
  }
  bool KeepsShape(const PlanNode& n, const PlanValue& v) const {
    return n.shapes[0].IsFullyDefined() && n.shapes[0] == ShapeOf(v);
  }

  // Returns an input, or an input's input, that output i equals.
  std::optional<PlanValue> Known(const PlanNode& n, int i) const {
    std::optional<PlanValue> value;
    if (no_ops_) value = PassedOn(n, i);
    if (!value && identities_) value = Identical(n);
    return value;
  }

  std::optional<PlanValue> PassedOn(const PlanNode& n, int i) const {
    const std::string& op = n.node->op_name();
    if (n.traits().movement == Movement::kIdentity) return n.inputs[i];
    if (op == "Cast" && n.node->input_type(0) == n.node->output_type(0)) return n.inputs[0];
    if (op == "AddN" && n.inputs.size() == 1) return n.inputs[0];
    if (op == "ToBool" && n.node->input_type(0) == DT_BOOL && ShapeOf(n.inputs[0]) == Shape())
      return n.inputs[0];
    if (n.traits().identity_if_same_shape && KeepsShape(n, n.inputs[0])) return n.inputs[0];
    if (op == "Transpose") {
      const std::optional<std::vector<int64_t>> perm = Permutation(n);
      if (perm && absl::c_is_sorted(*perm)) return n.inputs[0];
    }
    return std::nullopt;
  }

  std::optional<PlanValue> Identical(const PlanNode& n) const {
    const std::string& op = n.node->op_name();
    if (const std::optional<NeutralElement>& neutral = n.traits().neutral;
        neutral && (neutral->in_floating_point || IsInteger(n.node->output_type(0)))) {
      if (IsNeutral(n, *neutral, 1)) return n.inputs[0];
      if (neutral->either_side && IsNeutral(n, *neutral, 0)) return n.inputs[1];
    }
    if (n.inputs.empty()) return std::nullopt;
    const PlanNode& inner = plan_.nodes[n.inputs[0].node];
    if (inner.kind != PlanNode::Kind::kOp || inner.node->op_name() != op) return std::nullopt;
    if (n.traits().involution) return inner.inputs[0];
    if (op != "Transpose") return std::nullopt;
    const std::optional<std::vector<int64_t>> first = Permutation(inner), second = Permutation(n);
    if (!first || !second || first->size() != second->size()) return std::nullopt;
    for (size_t d = 0; d < second->size(); ++d) {
      if ((*first)[(*second)[d]] != static_cast<int64_t>(d)) return std::nullopt;
    }
    return inner.inputs[0];
  }

  // Returns true if all elements of operand i are neutral, and it does not broadcast the other
  // operand.
  bool IsNeutral(const PlanNode& n, const NeutralElement& neutral, int i) const {
    const Tensor* constant = ConstantOf(n.inputs[i]);
    if (constant == nullptr || !IsAll(*constant, neutral.value)) return false;
    return constant->rank() == 0 || KeepsShape(n, n.inputs[1 - i]);
  }

  // Returns the permutation of a Transpose, if it is known and valid.
  std::optional<std::vector<int64_t>> Permutation(const PlanNode& n) const {
    const Tensor* perm = ConstantOf(n.inputs[1]);
    if (perm == nullptr || perm->rank() != 1) return std::nullopt;
    const Shape& shape = ShapeOf(n.inputs[0]);
    const int64_t rank = perm->num_elements();
    if (!shape.has_rank() || shape.rank() != rank) return std::nullopt;
    std::vector<int64_t> axes(rank);
    std::vector<bool> seen(rank);
    for (int64_t i = 0; i < rank; ++i) {
      const int64_t axis = perm->IntAt(i) < 0 ? perm->IntAt(i) + rank : perm->IntAt(i);
      if (axis < 0 || axis >= rank || seen[axis]) return std::nullopt;
      seen[axis] = true;
      axes[i] = axis;
    }
    return axes;
  }

  // ---- common subexpressions

  // Replaces the node's outputs by those of an earlier equivalent node. Returns false if there is
  // none.
  bool FindTwin(int id) {
    const PlanNode& n = plan_.nodes[id];
    if (n.is_constant(0) && (n.num_outputs() > 1 || !IsComparable(n.constants[0]))) return false;
    std::vector<int>& candidates = nodes_by_hash_[Hash(n)];
    for (const int other : candidates) {
      if (!DoTheSame(plan_.nodes[other], n)) continue;
      for (int i = 0; i < n.num_outputs(); ++i) Replace(id, i, Replaced({other, i}));
      return true;
    }
    candidates.push_back(id);
    return false;
  }

  static size_t Hash(const PlanNode& n) {
    if (n.is_constant(0)) {
      const Tensor& t = n.constants[0];
      return absl::HashOf(static_cast<int>(t.dtype()),
                          absl::string_view(static_cast<const char*>(t.raw()), BytesOf(t)));
    }
    size_t hash = absl::HashOf(n.node->op_name());
    for (const PlanValue& v : n.inputs) hash = absl::HashOf(hash, v.node, v.output);
    return hash;
  }

  static bool DoTheSame(const PlanNode& a, const PlanNode& b) {
    if (a.device != b.device || a.loop != b.loop || a.is_constant(0) != b.is_constant(0))
      return false;
    if (a.in_body && !b.in_body) return false;  // b runs first
    if (a.is_constant(0)) {
      return a.is_on_accelerator(0) == b.is_on_accelerator(0) &&
             SameBytes(a.constants[0], b.constants[0]);
    }
    return a.node->op_name() == b.node->op_name() && a.inputs == b.inputs &&
           a.controls == b.controls && a.may_be_dead == b.may_be_dead &&
           SameAttributes(a.node->attrs(), b.node->attrs());
  }

  // Compares the op's attributes: names that begin with '_' describe the node only.
  static bool SameAttributes(const AttrMap& a, const AttrMap& b) {
    auto i = a.begin(), j = b.begin();
    for (;; ++i, ++j) {
      while (i != a.end() && i->first[0] == '_') ++i;
      while (j != b.end() && j->first[0] == '_') ++j;
      if (i == a.end() || j == b.end()) return i == a.end() && j == b.end();
      if (i->first != j->first || i->second != j->second) return false;
    }
  }

  PlanGraph& plan_;
  const bool no_ops_, identities_, common_;
  std::vector<absl::InlinedVector<PlanValue, 1>>
      same_;  // by node and output; node -1: not replaced
  absl::flat_hash_map<size_t, std::vector<int>> nodes_by_hash_;
};

}  // namespace

void Simplify(PlanGraph& plan, const PlanEnvironment& env) { Simplifier(plan, env).Run(); }

}  // namespace weir
