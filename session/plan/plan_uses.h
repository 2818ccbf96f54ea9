#ifndef WEIR_SESSION_PLAN_PLAN_USES_H_
#define WEIR_SESSION_PLAN_PLAN_USES_H_

#include <vector>

#include "absl/container/inlined_vector.h"
#include "weir/session/plan/plan_graph.h"

namespace weir {

// One use of a node.
struct PlanUse {
  enum class Kind : uint8_t {
    kInput,    // input `input` of node `user` is output `output`
    kControl,  // node `user` waits for the node
    kFetch,    // output `output` is fetched
    kTarget,   // the step runs the node
    kCarry,    // output `output` is the next value of the loop variable, or kCarry, `user`
  };
  Kind kind = Kind::kInput;
  int user = -1;  // -1 for kFetch and kTarget
  int output = 0, input = 0;

  bool is_input() const { return kind == Kind::kInput; }
  // True for edges of the graph, which the order of nodes follows.
  bool is_edge() const { return kind == Kind::kInput || kind == Kind::kControl; }
};

// The uses of all nodes of a plan when the object is made. A pass that changes edges either makes a
// new one, or calls Add for the uses that it needs to see.
class PlanUses {
 public:
  // By user: for each node in order its inputs, then its control inputs; then the other kinds.
  using List = absl::InlinedVector<PlanUse, 1>;

  PlanUses() = default;
  explicit PlanUses(const PlanGraph& plan);
  bool empty() const { return uses_.empty(); }

  const List& Of(int node) const { return uses_[node]; }
  void Add(int node, const PlanUse& use) { uses_[node].push_back(use); }
  // Records that `to` uses `node` instead of `from`.
  void ReplaceUser(int node, int from, int to) {
    for (PlanUse& use : uses_[node]) {
      if (use.user == from) use.user = to;
    }
  }

  // Returns the node whose input, output 0 of `node`, is the only use of `node`; -1 if there is
  // none.
  int OnlyUser(int node) const;
  // True if all uses are inputs that take output 0: the node is not fetched, and no control edge
  // leaves it.
  bool HasOnlyInputUses(int node) const;
  // True if some use takes another output than output 0.
  bool UsesOtherOutputs(int node) const;
  // True if a use leaves the iteration or the step: the value is fetched or carried, or the node is
  // a target.
  bool Escapes(int node) const;

 private:
  std::vector<List> uses_;  // by node
};

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_PLAN_USES_H_
