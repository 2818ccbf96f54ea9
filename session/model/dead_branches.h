#ifndef WEIR_SESSION_MODEL_DEAD_BRANCHES_H_
#define WEIR_SESSION_MODEL_DEAD_BRANCHES_H_

#include <vector>

namespace weir::proto {
class GraphDef;
class NodeDef;
}  // namespace weir::proto

namespace weir {

// Replaces conditionals whose predicate is a constant (or the Identity or LogicalNot of one) by the
// branch that they take: a Switch and a Merge by an Identity, an If by a call. Nodes of the other
// branch are then needed by nothing. Nodes that the result needs besides, with new names, are
// appended to `more`.
void ReplaceConstantConditionals(proto::GraphDef* def, std::vector<proto::NodeDef>* more);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_DEAD_BRANCHES_H_
