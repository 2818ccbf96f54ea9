#ifndef WEIR_SESSION_ROW_OPS_H_
#define WEIR_SESSION_ROW_OPS_H_

#include <optional>

#include "absl/container/inlined_vector.h"
#include "weir/session/plan.h"

namespace weir {

// A node that works on each row of a batch by itself: row i of its output 0 follows from row i of
// the inputs that are cut and from all of the others. A row is an entry of dimension 0.
struct RowOp {
  absl::InlinedVector<bool, 4> cut;  // by input
  // Walks memory even after fusion, as convolutions and pools do; what works on elements, or only
  // says what shape they have, does not.
  bool makes_values = false;
  bool names_rows = false;  // input 1 is a shape, and the rows are counted in it
};

// Nothing for a node that does not, or of which too little is known: the shapes of the inputs and
// of output 0, and axes and shapes that are inputs. The node has an output; what is said of rows is
// said of output 0 alone.
std::optional<RowOp> FindRowOp(const PlanGraph& plan, const PlanNode& n);

}  // namespace weir

#endif  // WEIR_SESSION_ROW_OPS_H_
