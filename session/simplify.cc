#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "weir/session/plan.h"

// Values that a step has already. Graphs, as people and gradient rules write them, ask for one
// value under many names: a variable's read is an Identity, each layer's loss is multiplied by one,
// the same constant stands in a hundred places and with it the same Reshape. Three optimizations
// find an output that equals another one, each under its own name in SessionOptions::disable:
//
//   no_ops                   a node passes its input on: Identity, a Cast to the same type, a
//                            Reshape, Transpose, Slice or Pad that changes nothing, AddN of one
//   algebraic_simplification    x * 1, x / 1, x - 0, not(not x), transposed there and back, ...
//   common_subexpression_elimination    an earlier node does the same to the same inputs
//
// What takes the output, or fetches it, is given the other value instead, and that is all: a node
// that nobody uses any more falls to EliminateDeadNodes; one that is a target or is waited for stays what
// it is. One walk in topological order does it, since a node's inputs are replaced before it is
// looked at, and so equal trees fold from their leaves.
//
// Results stay what they were, bit for bit. So x + 0 is left alone in floating point (it makes 0 of
// -0), and values are taken for equal only where they lie in the same memory and neither a control
// edge, nor a branch not taken, nor state tells the two apart.
namespace weir {

namespace {

constexpr int64_t kMostElements = 4096;      // of a constant that is looked through
constexpr size_t kMostComparedBytes = 1024;  // of constants that are compared

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

// Every element is this number (a zero: not -0). 1 stands for true as well.
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

// Small enough to compare, and made of nothing but its bytes.
bool IsComparable(const Tensor& t) {
  return IsPlain(t.dtype()) && t.dtype() != DT_STRING && BytesOf(t) <= kMostComparedBytes;
}

bool SameBytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.raw(), b.raw(), BytesOf(a)) == 0;
}

// ---- rules

// `op` with all elements of one operand equal to `neutral` gives the other operand.
struct Neutral {
  absl::string_view op;
  double neutral;
  bool either_side;  // else only the second operand
  bool floats;       // holds in floating point, too
};
constexpr Neutral kNeutrals[] = {
    {"Mul", 1, true, true},         {"RealDiv", 1, false, true},    {"Div", 1, false, true},
    {"Sub", 0, false, true},        {"Add", 0, true, false},        {"AddV2", 0, true, false},
    {"LogicalAnd", 1, true, true},  {"LogicalOr", 0, true, true},   {"BitwiseOr", 0, true, false},
    {"BitwiseXor", 0, true, false}, {"LeftShift", 0, false, false}, {"RightShift", 0, false, false},
    {"FloorDiv", 1, false, false},  {"Pow", 1, false, false},
};

// Done twice, they give back what they were given.
constexpr absl::string_view kInvolutions[] = {"Neg", "LogicalNot", "Conj", "Invert"};

// They pass their input on, whatever it is.
constexpr absl::string_view kPassOn[] = {"Identity", "IdentityN", "StopGradient", "PreventGradient",
                                         "PlaceholderWithDefault"};
// They pass their first input on if it has the shape of the result already.
constexpr absl::string_view kReshape[] = {"Reshape", "BroadcastTo", "Squeeze",   "Tile",
                                          "Pad",     "PadV2",       "MirrorPad", "Slice"};

template <class Table>
bool Contains(const Table& table, const std::string& op) {
  return absl::c_linear_search(table, op);
}

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
  // All that the node does is to make values of values.
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
    static constexpr absl::string_view kOthers[] = {"Switch",   "_SwitchN",    "NextIteration",
                                                    "LoopCond", "Placeholder", "PlaceholderV2"};
    return n.node->num_outputs() > 0 && !Contains(kOthers, n.node->op_name());
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

  // Kernels find `value` where they would find the output.
  bool AtSamePlace(const PlanNode& n, int output, const PlanValue& value) const {
    const PlanNode& other = plan_.nodes[value.node];
    // Who takes what leaves a raised loop waits for the loop, even in that loop (in vain).
    const int home = plan_.IsLoopVariable(other) ? other.value_loop : other.loop;
    if (home >= 0 && !plan_.IsInside(n.loop, home)) return false;
    // Errors of a read name the node for which it was put in.
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

  // An input, or an input's input, that output i equals.
  std::optional<PlanValue> Known(const PlanNode& n, int i) const {
    std::optional<PlanValue> value;
    if (no_ops_) value = PassedOn(n, i);
    if (!value && identities_) value = Identical(n);
    return value;
  }

  std::optional<PlanValue> PassedOn(const PlanNode& n, int i) const {
    const std::string& op = n.node->op_name();
    if (Contains(kPassOn, op)) return n.inputs[i];
    if (op == "Cast" && n.node->input_type(0) == n.node->output_type(0)) return n.inputs[0];
    if (op == "AddN" && n.inputs.size() == 1) return n.inputs[0];
    if (op == "ToBool" && n.node->input_type(0) == DT_BOOL && ShapeOf(n.inputs[0]) == Shape())
      return n.inputs[0];
    if (Contains(kReshape, op) && KeepsShape(n, n.inputs[0])) return n.inputs[0];
    if (op == "Transpose") {
      const std::optional<std::vector<int64_t>> perm = Permutation(n);
      if (perm && absl::c_is_sorted(*perm)) return n.inputs[0];
    }
    return std::nullopt;
  }

  std::optional<PlanValue> Identical(const PlanNode& n) const {
    const std::string& op = n.node->op_name();
    for (const Neutral& rule : kNeutrals) {
      if (rule.op != op || (!rule.floats && !IsInteger(n.node->output_type(0)))) continue;
      if (IsNeutral(n, rule, 1)) return n.inputs[0];
      if (rule.either_side && IsNeutral(n, rule, 0)) return n.inputs[1];
    }
    if (n.inputs.empty()) return std::nullopt;
    const PlanNode& inner = plan_.nodes[n.inputs[0].node];
    if (inner.kind != PlanNode::Kind::kOp || inner.node->op_name() != op) return std::nullopt;
    if (Contains(kInvolutions, op)) return inner.inputs[0];
    if (op != "Transpose") return std::nullopt;
    const std::optional<std::vector<int64_t>> first = Permutation(inner), second = Permutation(n);
    if (!first || !second || first->size() != second->size()) return std::nullopt;
    for (size_t d = 0; d < second->size(); ++d) {
      if ((*first)[(*second)[d]] != static_cast<int64_t>(d)) return std::nullopt;
    }
    return inner.inputs[0];
  }

  // Operand i is all neutral, and does not broadcast the other one.
  bool IsNeutral(const PlanNode& n, const Neutral& rule, int i) const {
    const Tensor* constant = ConstantOf(n.inputs[i]);
    if (constant == nullptr || !IsAll(*constant, rule.neutral)) return false;
    return constant->rank() == 0 || KeepsShape(n, n.inputs[1 - i]);
  }

  // Of a Transpose, if it is known and is one.
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

  // ---- nodes that do the same

  // Gives the node's outputs those of an earlier one that does the same, if there is one.
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

  // Those of the op: what begins with '_' is said of the node.
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
  std::vector<absl::InlinedVector<PlanValue, 1>> same_;  // by node and output; node -1: itself
  absl::flat_hash_map<size_t, std::vector<int>> nodes_by_hash_;
};

}  // namespace

void Simplify(PlanGraph& plan, const PlanEnvironment& env) { Simplifier(plan, env).Run(); }

}  // namespace weir
