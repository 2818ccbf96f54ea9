#ifndef WEIR_SESSION_PLAN_ROW_OPS_H_
#define WEIR_SESSION_PLAN_ROW_OPS_H_

#include <optional>

#include "absl/container/inlined_vector.h"
#include "weir/session/plan/plan_graph.h"

namespace weir {

// A node that processes each row of a batch independently: row i of its output 0 depends on row i
// of the inputs that are sliced and on the whole of the others. A row is an entry of dimension 0.
struct RowOp {
  absl::InlinedVector<bool, 4> sliced;  // by input
  // True for ops that read memory even after fusion, as convolutions and pools do; elementwise ops
  // and ops that only change the shape do not.
  bool makes_values = false;
  bool has_shape_input = false;  // input 1 is a shape, whose first dimension is the number of rows
};

// Returns nothing for other nodes, and for those about which too little is known: the shapes of the
// inputs and of output 0, and the values of axes and shapes that are inputs. The node must have an
// output; the description is about output 0 only.
std::optional<RowOp> FindRowOp(const PlanGraph& plan, const PlanNode& n);

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_ROW_OPS_H_
