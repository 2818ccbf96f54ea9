#ifndef WEIR_SESSION_VARIABLE_USE_H_
#define WEIR_SESSION_VARIABLE_USE_H_

#include <string>
#include <utility>
#include <vector>

#include "weir/session/plan.h"

// Which nodes of a plan use which variables. A variable is known by the node that makes its handle
// or reference; of several that name the same state, by the first.
namespace weir {

// Of a handle to a resource, or of a reference.
constexpr bool IsHandle(DataType type) { return type == DT_RESOURCE || IsRef(type); }
// VarHandleOp and its like.
bool IsVariableOp(absl::string_view op);
bool IsVariable(const Node& node);
bool IsVariable(const PlanNode& node);
// Container and name of the state behind it.
std::pair<std::string, std::string> VariableKey(const Node& variable);

// By node; -1 for none.
struct VariableValues {
  std::vector<int> handle_of;  // whose handle or reference output 0 is (queues and the like too)
  std::vector<int> value_of;   // the variable whose value output 0 shares
};
VariableValues FindVariables(const PlanGraph& plan);

struct VariableAccess {
  enum class Kind {
    kRead,    // a value, or whether there is one
    kUpdate,  // changes the value that is there
    kAssign,  // replaces it
  };
  int node = -1, variable = -1;
  Kind kind = Kind::kRead;
};
// One for every input that is a handle or a reference, in the order of nodes. Nodes that only hand
// it on are left out.
std::vector<VariableAccess> FindAccesses(const PlanGraph& plan, const VariableValues& variables);

}  // namespace weir

#endif  // WEIR_SESSION_VARIABLE_USE_H_
