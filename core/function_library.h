#ifndef WEIR_CORE_FUNCTION_LIBRARY_H_
#define WEIR_CORE_FUNCTION_LIBRARY_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weir/core/graph.h"

namespace weir::proto {
class FunctionDef;
class FunctionDefLibrary;
}  // namespace weir::proto

namespace weir {

// The functions of a graph: what attributes such as `then_branch` name, and what nodes call as if
// it were an op. Immutable, so that graphs, bodies and sessions share one; a graph that gets more
// functions gets a new library, which shares what was there.
class FunctionLibrary {
 public:
  // `base` (null: none) and the functions of `def`. INVALID_ARGUMENT if a name has two definitions
  // that differ.
  static absl::StatusOr<std::shared_ptr<const FunctionLibrary>> Extend(
      const std::shared_ptr<const FunctionLibrary>& base, const proto::FunctionDefLibrary& def);
  // The same from a FunctionDefLibrary's bytes.
  static absl::StatusOr<std::shared_ptr<const FunctionLibrary>> Extend(
      const std::shared_ptr<const FunctionLibrary>& base, absl::string_view bytes);

  // Null if there is none.
  const proto::FunctionDef* FindDef(absl::string_view name) const;
  // The function's signature as the record of an op. NOT_FOUND, or INVALID_ARGUMENT if it is
  // malformed.
  absl::StatusOr<const OpSpec*> FindOp(absl::string_view name) const;
  // The function that the library declares to be the gradient of this one; "" if there is none.
  std::string GradientOf(absl::string_view name) const;
  // The function that the library registers as the gradient of nodes whose `_gradient_op_type` is
  // `name`; "" if there is none.
  std::string RegisteredGradient(absl::string_view name) const;
  // In the order in which they were added.
  std::vector<std::string> Names() const;
  void ToProto(proto::FunctionDefLibrary* def) const;
  // A FunctionDefLibrary's bytes.
  std::string ToBytes() const;

 private:
  struct Function;
  std::vector<std::shared_ptr<const Function>> functions_;
  std::map<std::string, const Function*, std::less<>> by_name_;
  std::map<std::string, std::string, std::less<>> gradients_;
  std::vector<std::pair<std::string, std::string>> registered_gradients_;
};

// A function made into a graph, for one set of attribute values.
struct FunctionBody {
  std::string name;
  std::unique_ptr<Graph> graph;
  Outputs args;     // nodes `_Arg`, which never run: the values are fed
  Outputs results;  // may be args
  // What is run besides: the nodes that control outputs name, and those that have state.
  std::vector<Operation> effects;
};
// Replaces attributes of the signature by the values in `function`, and names by edges. The graph
// shares `library`. INVALID_ARGUMENT for an unknown function, and (with the function's and the
// node's name) for attributes without a value, inputs and results that name nothing or are of
// another type; else the errors of ImportGraphDef. Names are put behind `prefix` and a '/', if
// there is one.
absl::StatusOr<FunctionBody> InstantiateFunction(
    const std::shared_ptr<const FunctionLibrary>& library, const FunctionRef& function,
    const OpRegistry& ops, const GraphVersions& versions, absl::string_view prefix = "");

// Text that is the same for equal functions with equal attributes, and only for these.
std::string FunctionKey(const FunctionRef& function);

// Adds a function to the graph's library, from nodes of a graph that was built for it:
//
//   Graph body;
//   Output x = Placeholder(body, DT_FLOAT);
//   DefineFunction(graph, "square", body, {x}, {Mul(x, x)});
//
// The arguments are nodes with one output, which become the function's own; it has all other nodes
// of `body`. Types are fixed. INVALID_ARGUMENT if the graph has a function of that name that
// differs.
absl::Status DefineFunction(Graph& graph, absl::string_view name, const Graph& body,
                            const Outputs& args, const Outputs& results,
                            const std::vector<Operation>& effects = {});

}  // namespace weir

#endif  // WEIR_CORE_FUNCTION_LIBRARY_H_
