#ifndef WEIR_OPS_MODULE_H_
#define WEIR_OPS_MODULE_H_

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "weir/core/graph.h"
#include "weir/ops/variable.h"

namespace weir {

// A part of a model that knows its variables (tf.Module). C++ cannot list a class's members, so a
// module says which of them count:
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
// Members are walked in the order of their names; what is under a name a second time replaces the
// first. Tracked modules must outlive the one that tracks them, which members of a class do; a
// module stays where it is made. For one thread at a time, as the graph.
class Module {
 public:
  // The graph outlives the module.
  explicit Module(Graph& graph, absl::string_view name = {}) : graph_(graph), name_(name) {}
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  Graph& graph() const { return graph_; }
  // As given; by default the name of the class in lower case, words joined by '_': "dense",
  // "residual_block". (The full name is known once the constructors have run.)
  std::string name() const;
  // "dense_1/": made unique when first asked for. NameScope(graph, module.name_scope()) opens it
  // anew each time.
  const std::string& name_scope();

  // This module's variables, then those of modules in it, each once.
  Variables variables() const;
  // Those of them that are trainable.
  Variables trainable_variables() const;
  // All modules in this one, each once, outer ones before inner ones.
  std::vector<Module*> submodules();

 protected:
  // Returns the member. Null modules and invalid variables are left out of what is walked.
  Variable Track(absl::string_view name, Variable variable);
  void Track(absl::string_view name, Module& module);
  void Track(absl::string_view name, const Variables& list);
  void Track(absl::string_view name, const std::vector<Module*>& list);
  void Track(absl::string_view name, const std::map<std::string, Variable>& map);
  void Track(absl::string_view name, const std::map<std::string, Module*>& map);

 private:
  using Member = std::variant<Variable, Module*>;
  // All modules from here on, this one first; each once, also if they track one another.
  std::vector<const Module*> Walk() const;

  Graph& graph_;
  const std::string name_;
  std::string name_scope_;
  std::map<std::string, std::vector<Member>> members_;
};

}  // namespace weir

#endif  // WEIR_OPS_MODULE_H_
