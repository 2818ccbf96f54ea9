#ifndef WEIR_SESSION_PLAN_EXTERNAL_WAITS_H_
#define WEIR_SESSION_PLAN_EXTERNAL_WAITS_H_

#include <cstdint>
#include <vector>

#include "weir/session/plan/plan_graph.h"

namespace weir {

// The nodes that wait for something outside of the step: an element of a queue, a lock, room in a
// staging area. Everything that runs after such a node waits too. Passes that add orderings which
// the graph does not have use this to see what the ordering may block: the outside may need this
// step to make progress (order_nodes.cc).
class ExternalWaits {
 public:
  // `graph` is in topological order and has kernels.
  explicit ExternalWaits(const PlanGraph& graph);

  // True if no node waits.
  bool empty() const { return num_waiting_ == 0; }
  // True if running `second` after `first` would not make it wait for anything outside that it does
  // not wait for already.
  bool MayOrder(int first, int second) const;
  // Returns how many waiting nodes the node depends on, itself included; for a node in a loop,
  // those of its iteration. The count grows along edges.
  int Count(int node) const { return counts_[node]; }
  // The same for a loop as a unit of the step, or of an iteration of the loop around it.
  int CountOfLoop(int loop) const { return loop_counts_[loop]; }
  // True if the node waits for input from outside the step.
  static bool WaitsForInput(const PlanNode& n);

 private:
  using Word = uint64_t;
  struct Sets {
    std::vector<Word> bits;
    size_t words = 0;
    Word* of(int i) { return bits.data() + i * words; }
    const Word* of(int i) const { return bits.data() + i * words; }
    bool Add(Word* to, const Word* from) const;
    int Count(int i) const;
  };

  const Word* SetOf(int node, int region) const;
  bool AddDependency(int node, int on);
  bool Update();

  const PlanGraph& graph_;
  int num_waiting_ = 0;
  bool exact_ = true;  // false if there are too many waiting nodes: the sets then record only
                       // whether a node waits
  Sets of_node_;       // the waiting nodes that it depends on within an iteration of its loop, or
                       // outside of all loops
  Sets of_loop_;  // the same for a loop as a unit, which waits for all that enters it, and for all
                  // in it
  std::vector<int> counts_, loop_counts_;
};

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_EXTERNAL_WAITS_H_
