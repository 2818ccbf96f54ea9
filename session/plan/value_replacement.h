#ifndef WEIR_SESSION_PLAN_VALUE_REPLACEMENT_H_
#define WEIR_SESSION_PLAN_VALUE_REPLACEMENT_H_

#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/session/plan/plan_graph.h"

namespace weir {

// Returns true if the node is a pure function of tensor values.
bool IsPure(const PlanNode& n);

// Compares the attributes of two nodes of one op. Names that begin with '_' describe the node only.
bool SameAttributes(const AttrMap& a, const AttrMap& b);

// Returns the permutation of a Transpose, if it is known and valid.
std::optional<std::vector<int64_t>> PermutationOf(const PlanGraph& plan, const PlanNode& transpose);

// Replaces values by equal values that exist already, in every user and fetch. EliminateDeadNodes
// removes nodes that become unused; a node that is a target or the source of a control edge stays.
//
// One walk in topological order is sufficient, since a node's inputs are replaced before the node
// is visited, and so equal trees are merged from their leaves. Results are equal, bit for bit:
// values are merged only if they are stored in the same memory space and neither a control edge,
// nor a branch not taken, nor state distinguishes the two.
class ValueReplacement {
 public:
  explicit ValueReplacement(PlanGraph& plan) : plan_(plan), replacements_(plan.nodes.size()) {}

  // Visits each pure node. `visit` may call Replace for its outputs.
  void Run(absl::FunctionRef<void(int id, const PlanNode& n)> visit);
  // The same; `find` returns the value that output i of the node equals, if there is one. Skips
  // nodes that wait for control edges, constants, and values that are not in the same place.
  void RunOnOutputs(absl::FunctionRef<std::optional<PlanValue>(const PlanNode& n, int i)> find);

  // Users of the output take `value` from now on.
  void Replace(int id, int output, const PlanValue& value);
  // Returns the value that replaces `v`, or `v`.
  PlanValue Resolve(const PlanValue& v) const;

 private:
  bool IsSamePlacement(const PlanNode& n, int output, const PlanValue& value) const;

  PlanGraph& plan_;
  // By node and output; node -1: not replaced.
  std::vector<absl::InlinedVector<PlanValue, 1>> replacements_;
};

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_VALUE_REPLACEMENT_H_
