#ifndef WEIR_OPS_FRAMEWORK_VARIABLE_STORE_H_
#define WEIR_OPS_FRAMEWORK_VARIABLE_STORE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weir/core/graph/per_thread.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/variable_scope.h"

namespace weir {

// The per-graph state of variables.cc and related sources.
struct VariableStore {
  struct Entry {
    Variable variable;
    std::string created_at;  // "model.cc:12"
  };
  std::map<std::string, Entry>
      variables;  // those of GetVariable by full name; parts are separate entries
  std::map<std::string, Entry> partitioned;  // the partitioned variables of these parts
  // The open scopes of the building thread.
  struct Scopes {
    VariableScopeRef current = std::make_shared<VariableScopeInfo>();
    std::map<std::string, int>
        counts;  // number of times that each variable scope was opened inside its parent
    std::vector<VariableCreator> creators;  // innermost last
  };
  PerThread<Scopes> scopes;
  absl::flat_hash_map<const Node*, std::shared_ptr<VariableInfo>>
      by_storage;  // all variables of the graph

  static Scopes& ScopesOf(Graph& graph) { return Of(graph).scopes.get(); }
  static VariableStore& Of(Graph& graph) { return graph.Extension<VariableStore>(); }
};

// Returns `initial_value` with the ref variables that it reads replaced by their
// initialized_value(). The nodes in between are copied as "<node>_<variable>". `name_scope` is that
// of the new variable, with the trailing slash.
Output GuardInitialValue(Output initial_value, const std::string& name_scope);

// Checks that the static shapes are compatible. Fails the graph with the variable's name and both
// shapes.
bool CheckAssignable(const Variable& variable, Output value);

// Colocates new nodes with `node`: they take its colocation, which replaces the colocation of an
// enclosing variable, and device scopes are ignored. A null node with `ignore_existing` colocates
// them with nothing.
class PlaceWith : public ContextScope {
 public:
  PlaceWith(Graph& graph, const Node* node, bool ignore_existing = false);
};

}  // namespace weir

#endif  // WEIR_OPS_FRAMEWORK_VARIABLE_STORE_H_
