#ifndef WEIR_TOOLS_RUN_NODE_COST_H_
#define WEIR_TOOLS_RUN_NODE_COST_H_

#include <string>

#include "weir/core/graph/graph.h"
#include "weir/session/session.h"

// What a node has to do at least, counted from the shapes that a traced run has seen: the bytes
// that go to and from memory, and the floating-point operations.
namespace weir::tools {

struct NodeCost {
  // Each input and output counted once, as if nothing of it were in a cache. Strings, handles,
  // variants and dead values count nothing, and so does what only changes its name: an output that
  // lies where an input lies.
  double bytes = 0;
  // A multiplication and an addition are two; any elementwise function of an element is one, also
  // one that costs many instructions, such as Exp. The rim of a padded convolution counts in full.
  double flops = 0;
  // False for ops whose operations are not counted here: `flops` is 0 then.
  bool knows_flops = false;
  // The count is a guess: a variable that is updated through its handle is not among the inputs,
  // and is taken to be as large as the largest of the other inputs.
  bool estimated = false;
  // Bytes of an element that is computed: a vector holds half as many doubles as floats.
  int element_bytes = 4;
};

// `node` is the graph's node of that name, for the attributes of the few ops that need them; null
// if there is none, as for nodes that the runtime has made: such ops are not counted then. Shapes
// that do not fit the op count as nothing.
NodeCost CostOf(const NodeTrace& run, const Node* node);

// The run was skipped, being in a branch that was not taken.
bool IsDead(const NodeTrace& run);

// The op moves values and does not compute: Transpose, Concat, Identity, a copy to a device.
bool OnlyMoves(const NodeTrace& run);

// Why a node that only moves values has copied them in this run: "between devices", "rearranged",
// or "could have shared its input's memory" (of an op such as Reshape whose output could lie where
// its input lies). Empty if it has not, if it has copied less than a cache line, or is no such
// node.
std::string CopyReason(const NodeTrace& run);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_RUN_NODE_COST_H_
