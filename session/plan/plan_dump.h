#ifndef WEIR_SESSION_PLAN_PLAN_DUMP_H_
#define WEIR_SESSION_PLAN_PLAN_DUMP_H_

#include <string>

#include "weir/session/plan/plan_graph.h"

// Plans for people and viewers (weir run --dump-plan).
namespace weir {

// One line for each node, in the order of the plan:
//
//   17 dense/MatMul = MatMul(3:0, 12:0) ^4 -> float [?,128] on /device:CPU:0
//
// Nodes that do not run, loops and deadness are marked at the end of the line.
std::string PlanText(const PlanGraph& plan);

// A serialized GraphDef with the same nodes, for Netron and TensorBoard. It is made for viewing: it
// has the nodes that the runtime has made, and its loops have no back edges.
std::string PlanGraphDef(const PlanGraph& plan);

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_PLAN_DUMP_H_
