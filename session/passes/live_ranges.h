#ifndef WEIR_SESSION_PASSES_LIVE_RANGES_H_
#define WEIR_SESSION_PASSES_LIVE_RANGES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "weir/session/passes/lowering.h"
#include "weir/session/plan/plan_graph.h"

// The live ranges of the values of a plan, for the memory planner.
namespace weir {

// The most bytes of a value that a Merge copies in every iteration.
inline constexpr size_t kMaxCopiedBytes = 65536;

// True if the value of output k may be in the arena: its size is known before the step, and its
// memory is not that of a variable or of another value.
bool CanBeInArena(const PlanGraph& graph, const PlanNode& n, int k);
// The bytes of such a value.
size_t BytesOf(const PlanNode& n, int k);

// Values that share memory by construction: an Identity and its input, a Reshape and its input. The
// class is live from its first definition to its last use.
struct ValueClass {
  bool escapes = false;                       // leaves the step, or a variable takes it over
  bool own_block = false;                     // no other value reuses its block
  bool outside_arena = false;                 // allocated outside the arena
  int32_t root_slot = -1;                     // the slot of the node that defines it
  bool is_variable = false, swapped = false;  // of a structured loop; swapped with its next value
  int merge = -1;           // the Merge whose output it is, if that receives a loop-carried value
  int loop = -1;            // of the node that defines it
  int overwritten_in = -1;  // the loop whose iterations overwrite it
  int last_position = -1;
  absl::InlinedVector<std::pair<int, int>, 2> users;  // task -> last position in it
};

struct LiveRanges {
  std::vector<int> class_of;  // by slot; -1: not a value that this step computes
  std::vector<ValueClass> classes;
  // As in MemoryPlan.
  std::vector<std::vector<Loop::Move>> swapped;
  absl::flat_hash_set<int32_t> copied;
};
// Loops run the same part of the order many times. A value from outside that is used inside stays
// live until the loop ends. A loop-carried value stays live past the end of an iteration: it gets a
// block that nothing else reuses, and so does the Merge that receives it, which copies it there
// before anything else of the iteration runs (larger values are allocated outside the arena
// instead, and are not copied). If a Merge's own value is the next value of another Merge, it is
// copied between iterations.
//
// A structured loop copies nothing. A small loop variable and its next value get a block each, and
// between two iterations the two are swapped, values and blocks. Every other loop-carried value, a
// large one or one that is the next value of several variables, is allocated outside the arena.
// Initially a variable holds the value that entered the loop, in that value's memory; so everything
// that may hold the variable's value stays live as long as the variable is used.
LiveRanges FindLiveRanges(const PlanGraph& graph, const Lowering& lowering);

}  // namespace weir

#endif  // WEIR_SESSION_PASSES_LIVE_RANGES_H_
