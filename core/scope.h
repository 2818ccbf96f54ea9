#ifndef WEIR_CORE_SCOPE_H_
#define WEIR_CORE_SCOPE_H_

#include <string>
#include <vector>

#include "weir/core/graph.h"

// Scopes are C++ blocks: a guard changes the context that the graph gives to new nodes, and its end
// puts it back.
//   { NameScope scope(g, "hidden"); Output h = Relu(x); }      // "hidden/Relu"
namespace weir {

// Opens `name`, made unique, inside the current name scope. A name that ends in '/' re-opens that
// absolute scope as it is; an empty name goes to the root. Bad characters are INVALID_ARGUMENT on
// the graph.
class NameScope {
 public:
  NameScope(Graph& graph, absl::string_view name);
  ~NameScope();
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;
  // "a/b/", or "" at the root. A node given this name gets "a/b".
  const std::string& name() const { return name_; }

 private:
  Graph& graph_;
  std::string saved_, name_;
};

// Puts back the part of the context that it names.
class ContextScope {
 public:
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  ~ContextScope();

 protected:
  explicit ContextScope(Graph& graph);
  Graph& graph_;

 private:
  Graph::Context saved_;
};

// "/job:worker/device:GPU:1", "/gpu:0", "cpu:0": merged with enclosing scopes field by field, the
// inner one wins. Empty text clears all. A function decides node by node. Text that is no device is
// INVALID_ARGUMENT on the graph.
class DeviceScope : public ContextScope {
 public:
  DeviceScope(Graph& graph, absl::string_view device);
  DeviceScope(Graph& graph, Graph::DeviceFn device);
};

// New nodes run after these. Nested scopes add up; ClearControlDependencies starts from none.
class ControlDependencies : public ContextScope {
 public:
  ControlDependencies(Graph& graph, const std::vector<Operation>& ops);
};
class ClearControlDependencies : public ContextScope {
 public:
  explicit ClearControlDependencies(Graph& graph);
};

// New nodes are placed with `op`: they get its device and a "loc:@op" mark. `ignore_existing` drops
// outer ones.
class ColocateWith : public ContextScope {
 public:
  ColocateWith(Graph& graph, Operation op, bool ignore_existing = false);
};

// New nodes get these attributes too (names start with '_').
class AttrScope : public ContextScope {
 public:
  AttrScope(Graph& graph, absl::string_view name, AttrValue value);
};

// Resources made inside go into this container.
class ContainerScope : public ContextScope {
 public:
  ContainerScope(Graph& graph, absl::string_view container);
};

// A device name in parts; unset parts are "don't care".
struct DeviceName {
  std::optional<std::string> job, type;  // type in upper case: "CPU", "GPU"
  std::optional<int> replica, task, id;

  // Accepts full and short forms ("/cpu:0", "GPU:1", "/job:ps/task:3/device:CPU:*").
  // INVALID_ARGUMENT with the text.
  static absl::StatusOr<DeviceName> Parse(absl::string_view text);
  // Parts set in `other` win.
  void MergeFrom(const DeviceName& other);
  // True if every part set in both agrees.
  bool Matches(const DeviceName& other) const;
  // "/job:worker/replica:0/task:1/device:GPU:0", unset parts left out; `/device:GPU:*` for a type
  // without a number.
  std::string ToString() const;
};

}  // namespace weir

#endif  // WEIR_CORE_SCOPE_H_
