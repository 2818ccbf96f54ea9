#ifndef WEIR_SESSION_PASSES_LOWERING_H_
#define WEIR_SESSION_PASSES_LOWERING_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "weir/session/plan/plan.h"
#include "weir/session/plan/plan_environment.h"
#include "weir/session/plan/plan_graph.h"

// Lowering: from the graph that the passes have transformed to instructions. MakeKernels sets
// PlanNode::kernel. Each later pass of Phase::kLower (passes.h) reads the results of those before
// it and sets one member of a Lowering; EmitInstructions also moves the kernels out of the graph.
// None of them changes the graph's edges.
namespace weir {

// The order in which the nodes of a plan run (order_nodes.cc).
struct NodeOrder {
  std::vector<int> order;
  std::vector<int> position;  // by node; -1 if it does not run
  // By loop: its first and last position; -1 if none of its nodes runs.
  std::vector<std::pair<int, int>> loops;
  // By node: nodes that the order has put before it because both use the same variable.
  std::vector<IndexList> variable_predecessors;
  std::vector<int> value_of;          // by node: the variable whose value output 0 shares, or -1
  std::vector<IndexList> written_by;  // by node: the variables that it writes
};

// The places of values in an executor's array. A loop's values have contiguous slots.
struct Slots {
  std::vector<int32_t> first;  // by node: the slot of its output 0
  int32_t count = 0;

  int32_t of(int node, int output) const { return first[node] + output; }
  int32_t of(const PlanValue& v) const { return of(v.node, v.output); }
};

// The tasks that may run in parallel (make_tasks.cc). Task 0 runs first.
struct TaskGraph {
  // The tasks of a loop: all from `first`, which begins its iterations, to `last`, which ends them.
  struct OfLoop {
    int first = -1, last = -1;
    bool exists() const { return first >= 0; }
  };
  std::vector<int> task_of;                    // by node
  std::vector<std::vector<int>> predecessors;  // by task, with smaller numbers
  std::vector<OfLoop> of_loop;                 // by loop; none if it runs in one task

  // Returns the task at whose end the loop is over; `node` is any node in it.
  int LastTask(int loop, int node) const {
    return of_loop[loop].exists() ? of_loop[loop].last : task_of[node];
  }
};

// Which values are at which offset of the step's arena (plan_memory.cc). Empty: each value has
// memory of its own.
struct MemoryPlan {
  std::vector<Plan::Placement> placements;
  std::vector<std::pair<Device*, size_t>> arenas;  // bytes per device
  // By loop: next values and variables that exchange their places between two iterations.
  std::vector<std::vector<Loop::Move>> swapped;
  // Slots of kCarry nodes whose next value must be copied: its memory is reused in the next
  // iteration before it is read.
  absl::flat_hash_set<int32_t> copied;
};

// When values outside the arena are released (release_values.cc). All lists are of slots.
struct ReleasePlan {
  std::vector<IndexList> before, after;  // by node
  std::vector<IndexList> after_loop;     // by loop: at the end of each iteration
  std::vector<IndexList> last_uses;      // by node: Instruction::last_uses
  // As in Plan.
  std::vector<int32_t> reset, dynamic;
  std::vector<uint8_t> moved_fetches;
};

struct Lowering {
  NodeOrder order;
  Slots slots;
  TaskGraph tasks;
  MemoryPlan memory;
  ReleasePlan releases;
  std::unique_ptr<Plan> plan;
};

}  // namespace weir

#endif  // WEIR_SESSION_PASSES_LOWERING_H_
