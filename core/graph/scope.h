#ifndef WEIR_CORE_GRAPH_SCOPE_H_
#define WEIR_CORE_GRAPH_SCOPE_H_

#include <string>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"

// Scopes are C++ blocks: a guard changes the graph's context for new nodes, and restores it at the
// end of the block.
//   { NameScope scope(g, "hidden"); Output h = Relu(x); }      // "hidden/Relu"
namespace WEIR_API weir {

// Opens `name`, made unique, inside the current name scope. A name that ends in '/' re-opens that
// absolute scope; an empty name opens the root scope. Invalid characters set an INVALID_ARGUMENT
// error on the graph.
class NameScope {
 public:
  // `graph` outlives the scope.
  NameScope(Graph& graph, absl::string_view name);
  ~NameScope();
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;
  // The scope's name: "a/b/", or "" at the root. A node with exactly this name is called "a/b".
  const std::string& name() const { return name_; }

 private:
  Graph& graph_;
  std::string saved_, name_;
};

// The base of scope guards: restores the graph's context at the end of the block.
class ContextScope {
 public:
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  ~ContextScope();

 protected:
  // Saves the context of `graph`, which outlives the guard.
  explicit ContextScope(Graph& graph);
  Graph& graph_;  // whose context is restored

 private:
  Graph::Context saved_;
};

// Sets the device of new nodes: "/job:worker/device:GPU:1", "/gpu:0", "cpu:0". Enclosing scopes are
// merged field by field; inner scopes win. An empty string clears all fields. A function computes
// the device for each node. A string that is not a device name sets an INVALID_ARGUMENT error on
// the graph.
class DeviceScope : public ContextScope {
 public:
  // Requests this device, or the one that the function returns for each node.
  DeviceScope(Graph& graph, absl::string_view device);
  DeviceScope(Graph& graph, Graph::DeviceFn device);
};

// New nodes run after these operations. Nested scopes accumulate; ClearControlDependencies resets
// them.
class ControlDependencies : public ContextScope {
 public:
  // Adds to the operations of the enclosing scopes.
  ControlDependencies(Graph& graph, const std::vector<Operation>& ops);
};
// New nodes do not wait for the operations of the enclosing scopes.
class ClearControlDependencies : public ContextScope {
 public:
  // Resets until the end of the block.
  explicit ClearControlDependencies(Graph& graph);
};

// Colocates new nodes with `op`: they get its device and a "loc:@op" mark. `ignore_existing` drops
// the marks of outer scopes.
class ColocateWith : public ContextScope {
 public:
  // `op` is a node of `graph`.
  ColocateWith(Graph& graph, Operation op, bool ignore_existing = false);
};

// Adds an attribute to new nodes (the name must start with '_').
class AttrScope : public ContextScope {
 public:
  // Adds until the end of the block.
  AttrScope(Graph& graph, absl::string_view name, AttrValue value);
};

// Sets the container of resources created inside.
class ContainerScope : public ContextScope {
 public:
  // An empty name is the default container, "localhost".
  ContainerScope(Graph& graph, absl::string_view container);
};

// A parsed device name; unset parts match anything.
struct DeviceName {
  std::optional<std::string> job, type;  // type in upper case: "CPU", "GPU"
  std::optional<int> replica, task, id;  // 0, 1, ...; unset: any

  // Parses full and short forms ("/cpu:0", "GPU:1", "/job:ps/task:3/device:CPU:*"). Returns
  // INVALID_ARGUMENT, with the text, for anything else.
  static absl::StatusOr<DeviceName> Parse(absl::string_view text);
  // Merges `other` into this name; parts set in `other` win.
  void MergeFrom(const DeviceName& other);
  // Returns true if all parts set in both names agree.
  bool Matches(const DeviceName& other) const;
  // Returns "/job:worker/replica:0/task:1/device:GPU:0", without unset parts; "/device:GPU:*" for a
  // type without a number.
  std::string ToString() const;
};

}  // namespace weir

#endif  // WEIR_CORE_GRAPH_SCOPE_H_
