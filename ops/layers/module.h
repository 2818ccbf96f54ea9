#ifndef WEIR_OPS_LAYERS_MODULE_H_
#define WEIR_OPS_LAYERS_MODULE_H_

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/framework/variable.h"

namespace WEIR_API weir {

// A part of a model that tracks its variables (tf.Module). C++ cannot enumerate the members of a
// class, so a module registers the ones that count:
//
//   class Dense : public Module {
//    public:
//     Dense(Graph& g, int64_t in, int64_t out) : Module(g) {
//       const NameScope scope(g, name_scope());
//       w_ = Track("w", MakeVariable(g, Zeros()({in, out}), {.name = "w"}));
//     }
//    private:
//     Variable w_;
//   };
//   class Mlp : public Module {
//     ...
//     Dense first_, second_;   // Track("first", first_); Track("second", second_);
//   };
//
// Members are visited in the order of their names. Tracking a second member under the same name
// replaces the first. Tracked modules must outlive the module that tracks them, as members of a
// class do. A module is neither copied nor moved. Not thread-safe, like the graph.
class Module {
 public:
  // The graph must outlive the module.
  explicit Module(Graph& graph, absl::string_view name = {}) : graph_(graph), name_(name) {}
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // The graph given to the constructor.
  Graph& graph() const { return graph_; }
  // The name given to the constructor. Default: the class name in lower case, with words joined by
  // '_': "dense", "residual_block". (The full name is known once the constructors have run.)
  std::string name() const;
  // The scope's name, such as "dense_1/", made unique on the first call. Each NameScope(graph,
  // module.name_scope()) opens the same scope.
  const std::string& name_scope();

  // This module's variables, followed by those of its submodules, without duplicates.
  Variables variables() const;
  // The trainable ones among variables().
  Variables trainable_variables() const;
  // All modules in this one, without duplicates, outer modules before inner ones.
  std::vector<Module*> submodules();

 protected:
  // Tracks and returns the member. Null modules and invalid variables are not tracked.
  Variable Track(absl::string_view name, Variable variable);
  void Track(absl::string_view name, Module& module);
  void Track(absl::string_view name, const Variables& list);
  void Track(absl::string_view name, const std::vector<Module*>& list);
  void Track(absl::string_view name, const std::map<std::string, Variable>& map);
  void Track(absl::string_view name, const std::map<std::string, Module*>& map);

 private:
  using Member = std::variant<Variable, Module*>;
  // All modules reachable from this one, which comes first, without duplicates, also if modules
  // track each other.
  std::vector<const Module*> Walk() const;

  Graph& graph_;
  const std::string name_;
  std::string name_scope_;
  std::map<std::string, std::vector<Member>> members_;
};

}  // namespace weir

#endif  // WEIR_OPS_LAYERS_MODULE_H_
