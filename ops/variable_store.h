#ifndef WEIR_OPS_VARIABLE_STORE_H_
#define WEIR_OPS_VARIABLE_STORE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weir/core/per_thread.h"
#include "weir/core/scope.h"
#include "weir/ops/variable_scope.h"

namespace weir {

// What variables.cc and its neighbors keep for one graph.
struct VariableStore {
  struct Entry {
    Variable variable;
    std::string made_at;  // "model.cc:12"
  };
  std::map<std::string, Entry> variables;    // GetVariable's, by full name; parts one by one
  std::map<std::string, Entry> partitioned;  // and what they are parts of
  // What is open, of the thread that builds.
  struct Scopes {
    VariableScopeRef current = std::make_shared<VariableScopeInfo>();
    std::map<std::string, int>
        counts;  // how often each variable scope was opened inside its parent
    std::vector<VariableCreator> creators;  // innermost last
  };
  PerThread<Scopes> scopes;
  absl::flat_hash_map<const Node*, std::shared_ptr<VariableInfo>>
      by_storage;  // every variable of the graph

  static Scopes& ScopesOf(Graph& graph) { return Of(graph).scopes.get(); }
  static VariableStore& Of(Graph& graph) { return graph.Extension<VariableStore>(); }
};

// `initial_value`, with what it reads of reference variables replaced by their initialized_value():
// nodes that lie between are copied as "<node>_<variable>". `name_scope` is the new variable's,
// with the slash.
Output GuardInitialValue(Output initial_value, const std::string& name_scope);

// The static shapes must fit; fails the graph with the variable's name and both shapes.
bool CheckAssignable(const Variable& variable, Output value);

// New nodes are placed with `node`: its colocation is theirs, in place of a variable's mark that
// encloses them, and device scopes do not apply. Null, with `ignore_existing`: with nothing.
class PlaceWith : public ContextScope {
 public:
  PlaceWith(Graph& graph, const Node* node, bool ignore_existing = false);
};

}  // namespace weir

#endif  // WEIR_OPS_VARIABLE_STORE_H_
