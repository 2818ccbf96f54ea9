#ifndef WEIR_SESSION_EXTERNAL_WAITS_H_
#define WEIR_SESSION_EXTERNAL_WAITS_H_

#include <cstdint>
#include <vector>

#include "weir/session/plan.h"

namespace weir {

// Which nodes wait for something outside of the step: an element of a queue, a lock, room in a
// staging area. All that runs after such a node waits too. What an order that the graph does not
// have may make wait is decided by this: the outside may need this step to go on (order.cc).
class ExternalWaits {
 public:
  // `graph` in topological order, with kernels.
  explicit ExternalWaits(const PlanGraph& graph);

  // No node waits.
  bool empty() const { return num_waiting_ == 0; }
  // If `second` ran after `first`, it would wait for nothing outside that it does not wait for
  // anyway.
  bool MayOrder(int first, int second) const;
  // For how many the node waits, itself included, or within a loop those of its iteration. Grows
  // along edges.
  int Count(int node) const { return counts_[node]; }
  // The same for all of a loop.
  int CountOfLoop(int loop) const { return loop_counts_[loop]; }
  // It waits, and for something to come in.
  static bool Takes(const PlanNode& n);

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

  int OutermostLoop(int node) const;
  void AddNeeds(int node, Sets* sets) const;
  void FindInIterations(const std::vector<int>& number);
  void FindAcrossLoops();

  const PlanGraph& graph_;
  int num_waiting_ = 0;
  bool exact_ = true;  // false: too many, and the sets tell only whether a node waits
  Sets inner_;         // by node: for what it waits in an iteration
  Sets outer_;         // by node, if there are loops: a loop is a whole, and waits for all in it
  std::vector<int> counts_, loop_counts_;
};

}  // namespace weir

#endif  // WEIR_SESSION_EXTERNAL_WAITS_H_
