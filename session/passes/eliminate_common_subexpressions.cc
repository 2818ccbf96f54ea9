#include <cstring>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/value_replacement.h"

// Common-subexpression elimination: a node that applies the same op, with the same attributes, to
// the same inputs as an earlier node is replaced by it, and so are equal constants. Graphs repeat
// themselves: the same constant occurs in a hundred places, and with it the same Reshape.
namespace weir {

namespace {

constexpr size_t kMaxComparedBytes = 1024;  // largest constants that are compared

size_t BytesOf(const Tensor& t) {
  return static_cast<size_t>(t.num_elements()) * ElementSize(t.dtype());
}

// Returns true if the tensor is small enough to compare, and its bytes are its value.
bool IsComparable(const Tensor& t) {
  return IsPlain(t.dtype()) && t.dtype() != DT_STRING && BytesOf(t) <= kMaxComparedBytes;
}

bool SameBytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.raw(), b.raw(), BytesOf(a)) == 0;
}

class CommonSubexpressions {
 public:
  explicit CommonSubexpressions(PlanGraph& plan) : plan_(plan), values_(plan) {}

  void Run() {
    values_.Run([this](int id, const PlanNode&) { FindEquivalent(id); });
  }

 private:
  // Replaces the node's outputs by those of an earlier equivalent node, if there is one.
  void FindEquivalent(int id) {
    const PlanNode& n = plan_.nodes[id];
    if (n.is_constant(0) && (n.num_outputs() > 1 || !IsComparable(n.constants[0]))) return;
    std::vector<int>& candidates = nodes_by_hash_[Hash(n)];
    for (const int other : candidates) {
      if (!AreEquivalent(plan_.nodes[other], n)) continue;
      for (int i = 0; i < n.num_outputs(); ++i) values_.Replace(id, i, values_.Resolve({other, i}));
      return;
    }
    candidates.push_back(id);
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

  static bool AreEquivalent(const PlanNode& a, const PlanNode& b) {
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

  PlanGraph& plan_;
  ValueReplacement values_;
  absl::flat_hash_map<size_t, std::vector<int>> nodes_by_hash_;
};

}  // namespace

void EliminateCommonSubexpressions(PlanGraph& plan) { CommonSubexpressions(plan).Run(); }

}  // namespace weir
