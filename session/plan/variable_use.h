#ifndef WEIR_SESSION_PLAN_VARIABLE_USE_H_
#define WEIR_SESSION_PLAN_VARIABLE_USE_H_

#include <string>
#include <utility>
#include <vector>

#include "weir/session/plan/plan_graph.h"

// Determines which nodes of a plan use which variables. A variable is identified by the node that
// creates its handle or reference; if several nodes name the same state, by the first.
namespace weir {

// Returns true for resource handles and references.
constexpr bool IsHandle(DataType type) { return type == DT_RESOURCE || IsRef(type); }
// Returns true for VarHandleOp and the ops like it.
bool IsVariable(const Node& node);
bool IsVariable(const PlanNode& node);
// Returns the container and name of the variable's state.
std::pair<std::string, std::string> VariableKey(const Node& variable);

// By node; -1 for none.
struct VariableValues {
  std::vector<int> handle_of;  // the variable (or queue etc.) whose handle or reference output 0 is
  std::vector<int> value_of;   // the variable whose value output 0 shares
};
VariableValues FindVariables(const PlanGraph& plan);

struct VariableAccess {
  enum class Kind {
    kRead,    // reads the value, or whether it has one
    kUpdate,  // modifies the value
    kAssign,  // replaces the value
  };
  int node = -1, variable = -1;
  Kind kind = Kind::kRead;
};
// Returns one access for every input that is a handle or a reference, in the order of nodes. Nodes
// that only forward it are excluded.
std::vector<VariableAccess> FindAccesses(const PlanGraph& plan, const VariableValues& variables);

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_VARIABLE_USE_H_
