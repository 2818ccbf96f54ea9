#ifndef WEIR_OPS_VARIABLE_SCOPE_H_
#define WEIR_OPS_VARIABLE_SCOPE_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "weir/core/graph.h"
#include "weir/core/scope.h"
#include "weir/ops/variable.h"

namespace weir {

// A line of a program, for messages: std::source_location, which Clang 14 does not have.
struct CallSite {
  const char* file = "";
  int line = 0;
  // As a default argument: the line of the call.
  static constexpr CallSite Here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

// A variable scope as an object: a prefix, a reuse state, and defaults for GetVariable inside it.
struct VariableScopeInfo {
  std::string name;                 // "a/b", "" at the root
  std::string original_name_scope;  // "a/b_1/": where ops of its first entry went
  Reuse reuse = Reuse::kCreate;
  Initializer initializer;
  Regularizer regularizer;
  Constraint constraint;
  std::optional<std::string> caching_device;
  CustomGetter custom_getter;
  Partitioner partitioner;
  DataType dtype = DT_FLOAT;
  std::optional<bool> use_resource;
};
// A captured scope: cheap to copy; it can be opened again anywhere in its graph.
using VariableScopeRef = std::shared_ptr<VariableScopeInfo>;

// Arguments of a VariableScope; what is not set is inherited.
struct VariableScopeOptions {
  std::optional<Reuse> reuse = {};
  std::string default_name = {};
  Initializer initializer = {};
  Regularizer regularizer = {};
  Constraint constraint = {};
  std::optional<std::string> caching_device = {};
  CustomGetter custom_getter = {};
  Partitioner partitioner = {};
  DataType dtype = DT_INVALID;
  std::optional<bool> use_resource = {};
  // False: opens no name scope.
  bool auxiliary_name_scope = true;
};

// Opens a variable scope until the end of the block:
//   VariableScope scope(g, "conv1");
//     by name: variables are "conv1/...", ops "conv1/...", "conv1_1/...", ...
//   VariableScope scope(g, captured, {.reuse = Reuse::kReuse});
//     by object: its absolute prefix, wherever this is
//   VariableScope scope(g, {.default_name = "layer"});
//     "layer", "layer_1", ...: the first not opened yet
// INVALID_ARGUMENT on the graph: neither name nor default name; only a default name while reusing;
// bad characters.
class VariableScope {
 public:
  VariableScope(Graph& graph, absl::string_view name, const VariableScopeOptions& options = {});
  VariableScope(Graph& graph, absl::string_view name, Reuse reuse)
      : VariableScope(graph, name, VariableScopeOptions{.reuse = reuse}) {}
  VariableScope(Graph& graph, const VariableScopeRef& scope,
                const VariableScopeOptions& options = {});
  VariableScope(Graph& graph, const VariableScopeRef& scope, Reuse reuse)
      : VariableScope(graph, scope, VariableScopeOptions{.reuse = reuse}) {}
  VariableScope(Graph& graph, const VariableScopeOptions& options);
  ~VariableScope();
  VariableScope(const VariableScope&) = delete;
  VariableScope& operator=(const VariableScope&) = delete;

  const std::string& name() const { return scope_->name; }
  const std::string& original_name_scope() const { return scope_->original_name_scope; }
  // From here on GetVariable shares what exists, in this scope and those opened inside.
  void reuse_variables() { scope_->reuse = Reuse::kReuse; }
  // To open again later.
  const VariableScopeRef& scope() const { return scope_; }
  operator const VariableScopeRef&() const { return scope_; }

 private:
  void Extend(absl::string_view name, const VariableScopeOptions& options);
  void Enter(VariableScopeInfo scope, const VariableScopeOptions& options);
  void OpenNameScope(absl::string_view name, const VariableScopeOptions& options);

  Graph& graph_;
  std::optional<NameScope> name_scope_;
  VariableScopeRef saved_, scope_;
  std::map<std::string, int> saved_counts_;  // when opened by object
  bool by_object_ = false;
};

// The scope that GetVariable uses now; the root one has an empty name.
VariableScopeRef CurrentVariableScope(Graph& graph);

// While it lives, `creator` is asked for every new variable of the graph, by MakeVariable or
// GetVariable; it may change the arguments and calls `next` for the next creator outwards. The
// innermost is asked first.
using VariableMaker =
    std::function<Variable(Graph&, const Initializer& initial_value, const VariableOptions&)>;
using VariableCreator = std::function<Variable(
    const VariableMaker& next, Graph&, const Initializer& initial_value, const VariableOptions&)>;
class VariableCreatorScope {
 public:
  VariableCreatorScope(Graph& graph, VariableCreator creator);
  ~VariableCreatorScope();
  VariableCreatorScope(const VariableCreatorScope&) = delete;
  VariableCreatorScope& operator=(const VariableCreatorScope&) = delete;

 private:
  Graph& graph_;
};

// tf.get_variable: the variable "<variable scope>/<name>", made or shared as the scope's reuse
// state says. Name scopes play no part. An error sticks to the graph and gives an invalid Variable:
//   ALREADY_EXISTS    it exists and reuse is off (the message says where it was made)
//   NOT_FOUND         it does not exist and reuse is on
//   INVALID_ARGUMENT  no shape and no initializer; shape not fully known; shape given beside a
//                     tensor or literal; a bad name; a shape or dtype that does not fit the
//                     existing variable
//
// With a partitioner (its own, or the scope's) it is a partitioned variable of the parts
// "<name>/part_0", ... An initializer gets each part's shape and where in the full shape it lies; a
// tensor or literal has the full shape, and is cut. To share it, the partitioner must give the same
// counts, or, with Reuse::kReuse, there may be none. INVALID_ARGUMENT besides: counts that are not
// one for each dimension, are below 1, cut more than one dimension, or make more parts than there
// are rows; other counts than the existing variable has; a variable of that name that is not
// partitioned, or is, where the other is asked for.
Variable GetVariable(Graph& graph, absl::string_view name, const Shape& shape,
                     VariableOptions options = {}, CallSite where = CallSite::Here());
// The short form: GetVariable(g, "w", {784, 10}, GlorotUniform()). (A template, so that `{.dtype =
// ...}` means options.)
template <class T, std::enable_if_t<std::is_convertible_v<const T&, Initializer>, int> = 0>
Variable GetVariable(Graph& graph, absl::string_view name, const Shape& shape, const T& initializer,
                     CallSite where = CallSite::Here()) {
  return GetVariable(graph, name, shape, VariableOptions{.initializer = initializer}, where);
}
// The shape comes from `options` or from the initializer.
Variable GetVariable(Graph& graph, absl::string_view name, VariableOptions options,
                     CallSite where = CallSite::Here());
// In collection "local_variables", and not trainable.
Variable GetLocalVariable(Graph& graph, absl::string_view name, const Shape& shape,
                          VariableOptions options = {}, CallSite where = CallSite::Here());
Variable GetLocalVariable(Graph& graph, absl::string_view name, VariableOptions options,
                          CallSite where = CallSite::Here());

}  // namespace weir

#endif  // WEIR_OPS_VARIABLE_SCOPE_H_
