#ifndef WEIR_OPS_FRAMEWORK_VARIABLE_SCOPE_H_
#define WEIR_OPS_FRAMEWORK_VARIABLE_SCOPE_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "weir/core/graph/graph.h"
#include "weir/core/graph/scope.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/framework/variable.h"

namespace WEIR_API weir {

// A source location for error messages: std::source_location, which Clang 14 does not have.
struct CallSite {
  const char* file = "";  // of the source
  int line = 0;           // from 1; 0: unknown
  // As a default argument: the location of the call.
  static constexpr CallSite Here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

// The state of a variable scope: a prefix, a reuse mode, and defaults for GetVariable inside it:
// `reuse`, `initializer`, `regularizer`, `constraint`, `caching_device`, `custom_getter`,
// `partitioner`, `dtype` and `use_resource` as in VariableOptions.
struct VariableScopeInfo {
  std::string name;                 // "a/b"; "" for the root scope
  std::string original_name_scope;  // "a/b_1/": the name scope of its first entry
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
// A captured scope. It is cheap to copy and can be opened again anywhere in its graph.
using VariableScopeRef = std::shared_ptr<VariableScopeInfo>;

// Options of a VariableScope. Unset options are inherited: `reuse`, `initializer`, `regularizer`,
// `constraint`, `caching_device`, `custom_getter`, `partitioner`, `dtype` and `use_resource` as in
// VariableOptions.
struct VariableScopeOptions {
  std::optional<Reuse> reuse = {};
  std::string default_name = {};  // the name, made unique, if none is given
  Initializer initializer = {};
  Regularizer regularizer = {};
  Constraint constraint = {};
  std::optional<std::string> caching_device = {};
  CustomGetter custom_getter = {};
  Partitioner partitioner = {};
  DataType dtype = DT_INVALID;
  std::optional<bool> use_resource = {};
  // If false, no name scope is opened.
  bool auxiliary_name_scope = true;
};

// Opens a variable scope until the end of the block:
//   VariableScope scope(g, "conv1");
//     by name: variables are "conv1/...", ops "conv1/...", "conv1_1/...", ...
//   VariableScope scope(g, captured, {.reuse = Reuse::kReuse});
//     by object: its absolute prefix, independent of the current scope
//   VariableScope scope(g, {.default_name = "layer"});
//     "layer", "layer_1", ...: the first one that has not been opened yet
// INVALID_ARGUMENT on the graph if there is neither a name nor a default name, if there is only a
// default name while reusing, or if the name has invalid characters.
class VariableScope {
 public:
  // By name; by object; by default name. `graph` outlives the scope, which is open until it is
  // destroyed. The destructor restores the outer one.
  VariableScope(Graph& graph, absl::string_view name, const VariableScopeOptions& options = {});
  // By name, with a reuse mode.
  VariableScope(Graph& graph, absl::string_view name, Reuse reuse)
      : VariableScope(graph, name, VariableScopeOptions{.reuse = reuse}) {}
  // By object, with options.
  VariableScope(Graph& graph, const VariableScopeRef& scope,
                const VariableScopeOptions& options = {});
  // By object, with a reuse mode.
  VariableScope(Graph& graph, const VariableScopeRef& scope, Reuse reuse)
      : VariableScope(graph, scope, VariableScopeOptions{.reuse = reuse}) {}
  // By default name.
  VariableScope(Graph& graph, const VariableScopeOptions& options);
  ~VariableScope();
  VariableScope(const VariableScope&) = delete;
  VariableScope& operator=(const VariableScope&) = delete;

  // "a/b", the prefix of variables; and "a/b_1/", the name scope in which it was opened first.
  const std::string& name() const { return scope_->name; }
  const std::string& original_name_scope() const { return scope_->original_name_scope; }
  // From now on GetVariable shares existing variables, in this scope and in those opened inside.
  void reuse_variables() { scope_->reuse = Reuse::kReuse; }
  // The captured scope, which can be opened again later.
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

// The current scope of GetVariable. The root scope has an empty name.
VariableScopeRef CurrentVariableScope(Graph& graph);

// While it is alive, MakeVariable and GetVariable call `creator` for each new variable of the
// graph. The creator may change the arguments, and calls `next` for the next outer creator. The
// innermost creator is called first.
using VariableMaker =
    std::function<Variable(Graph&, const Initializer& initial_value, const VariableOptions&)>;
using VariableCreator = std::function<Variable(
    const VariableMaker& next, Graph&, const Initializer& initial_value, const VariableOptions&)>;
class VariableCreatorScope {
 public:
  // `graph` outlives the scope.
  VariableCreatorScope(Graph& graph, VariableCreator creator);
  ~VariableCreatorScope();
  VariableCreatorScope(const VariableCreatorScope&) = delete;
  VariableCreatorScope& operator=(const VariableCreatorScope&) = delete;

 private:
  Graph& graph_;
};

// tf.get_variable: creates or shares the variable "<variable scope>/<name>", depending on the
// scope's reuse mode. Name scopes are ignored. An error is recorded in the graph and returns an
// invalid Variable:
//   ALREADY_EXISTS    it exists and reuse is off (the message says where it was created)
//   NOT_FOUND         it does not exist and reuse is on
//   INVALID_ARGUMENT  no shape and no initializer; shape not fully known; a shape together with a
//                     tensor or literal; an invalid name; a shape or dtype that is incompatible
//                     with the existing variable
//
// With a partitioner (its own, or the scope's) it is a partitioned variable with the parts
// "<name>/part_0", ... An initializer is called with each part's shape and its offset in the full
// shape. A tensor or literal has the full shape and is split. To share it, the partitioner must
// return the same counts, or, with Reuse::kReuse, there may be none. Also INVALID_ARGUMENT: counts
// that are not one per dimension, are below 1, partition more than one dimension, or exceed the
// number of rows; counts that differ from those of the existing variable; an existing variable of
// that name that is not partitioned although a partitioned one is requested, or vice versa.
Variable GetVariable(Graph& graph, absl::string_view name, const Shape& shape,
                     VariableOptions options = {}, CallSite call_site = CallSite::Here());
// The short form: GetVariable(g, "w", {784, 10}, GlorotUniform()). (It is a template so that
// `{.dtype = ...}` means options.)
template <class T, std::enable_if_t<std::is_convertible_v<const T&, Initializer>, int> = 0>
Variable GetVariable(Graph& graph, absl::string_view name, const Shape& shape, const T& initializer,
                     CallSite call_site = CallSite::Here()) {
  return GetVariable(graph, name, shape, VariableOptions{.initializer = initializer}, call_site);
}
// The shape comes from `options` or from the initializer.
Variable GetVariable(Graph& graph, absl::string_view name, VariableOptions options,
                     CallSite call_site = CallSite::Here());
// Adds the variable to the collection "local_variables". It is not trainable.
Variable GetLocalVariable(Graph& graph, absl::string_view name, const Shape& shape,
                          VariableOptions options = {}, CallSite call_site = CallSite::Here());
Variable GetLocalVariable(Graph& graph, absl::string_view name, VariableOptions options,
                          CallSite call_site = CallSite::Here());

}  // namespace weir

#endif  // WEIR_OPS_FRAMEWORK_VARIABLE_SCOPE_H_
