#ifndef WEIR_CORE_IO_FUNCTION_LIBRARY_H_
#define WEIR_CORE_IO_FUNCTION_LIBRARY_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"

// Functions of graphs: the library that holds their definitions, and what instantiates them.
// ops/framework/function.h builds nodes that call them.
namespace weir::proto {
class FunctionDef;
class FunctionDefLibrary;
}  // namespace weir::proto

namespace WEIR_API weir {

// A value that a function of a SavedModel has captured: the last arguments of a traced function are
// the values that its Python function took from outside.
struct CapturedValue {
  std::string function, tensor;  // a tensor in the body of a function, "Exp:0"; or else
  int object = -1;               // an object of the model, such as a variable
  int model = 0;                 // tells the objects of one call of WithCaptures from another's
  friend bool operator==(const CapturedValue&, const CapturedValue&) = default;
};
// What one function has captured, and which of its results are None.
struct FunctionCaptures {
  std::vector<CapturedValue> values;  // in the order of the last arguments
  // For each result of the Python function, whether it is a tensor; those that are None have no
  // result in the traced function.
  std::vector<bool> is_tensor;
};

// The function library of a graph. Functions are referenced by attributes such as `then_branch`,
// and by nodes that call them like ops. Immutable, and shared by graphs, function bodies and
// sessions. Adding functions to a graph replaces its library by a new one, which shares the
// existing functions.
class FunctionLibrary {
 public:
  // Returns a library with the functions of `base` (may be null) and of `def`. Returns
  // INVALID_ARGUMENT if two definitions with the same name differ.
  static absl::StatusOr<std::shared_ptr<const FunctionLibrary>> Extend(
      const std::shared_ptr<const FunctionLibrary>& base, const proto::FunctionDefLibrary& def);
  // Same, for a serialized FunctionDefLibrary.
  static absl::StatusOr<std::shared_ptr<const FunctionLibrary>> Extend(
      const std::shared_ptr<const FunctionLibrary>& base, absl::string_view bytes);

  // Returns a library that also knows what functions, by name, have captured. ToProto does not
  // write that.
  static std::shared_ptr<const FunctionLibrary> WithCaptures(
      const FunctionLibrary& base, std::map<std::string, FunctionCaptures, std::less<>> captures);

  // Returns null if there is no such function.
  const proto::FunctionDef* FindDef(absl::string_view name) const;
  // Returns the function's signature as an OpSpec. Returns NOT_FOUND, or INVALID_ARGUMENT if the
  // signature is malformed.
  absl::StatusOr<const OpSpec*> FindOp(absl::string_view name) const;
  // Returns the function that the library declares as the gradient of this one, or "".
  std::string GradientOf(absl::string_view name) const;
  // Returns the functions that the library registers as the gradient of nodes whose
  // `_gradient_op_type` is `name`. There are several only where models with functions of their own
  // share a graph.
  std::vector<std::string> RegisteredGradients(absl::string_view name) const;
  // Returns null if nothing is known of what the function has captured.
  const FunctionCaptures* FindCaptures(absl::string_view name) const;
  // Returns the names in insertion order.
  std::vector<std::string> Names() const;
  // Writes all definitions and gradients.
  void ToProto(proto::FunctionDefLibrary* def) const;
  // Returns a serialized FunctionDefLibrary.
  std::string ToBytes() const;

 private:
  struct Function;
  std::vector<std::shared_ptr<const Function>> functions_;
  std::map<std::string, const Function*, std::less<>> by_name_;
  std::map<std::string, std::string, std::less<>> gradients_;
  std::vector<std::pair<std::string, std::string>> registered_gradients_;
  std::map<std::string, FunctionCaptures, std::less<>> captures_;
  int num_models_ = 0;  // whose captures are known
};

// Where the nodes of a graph come from that instantiates a function: Graph::Extension.
struct FunctionOrigin {
  std::string function;  // empty: the graph instantiates none
  std::string prefix;    // of the names of its nodes
  Outputs args;          // as FunctionBody::args
};

// A function instantiated as a graph for one set of attribute values.
struct FunctionBody {
  std::string name;              // the function's
  std::unique_ptr<Graph> graph;  // the nodes; owned, and outlives the handles below
  Outputs args;                  // `_Arg` nodes; they never run, their values are fed
  Outputs results;               // may be args
  // Additional targets: the nodes named by control outputs, and stateful nodes.
  std::vector<Operation> effects;
};
// Instantiates a function: replaces placeholders by the attribute values in `function`, and names
// by edges. The graph shares `library`. A nonempty `prefix` and a '/' are prepended to all node
// names. Returns INVALID_ARGUMENT for an unknown function and, with the names of function and node,
// for missing attribute values and for inputs and results that do not exist or have another type;
// otherwise the errors of ImportGraphDef.
absl::StatusOr<FunctionBody> InstantiateFunction(
    const std::shared_ptr<const FunctionLibrary>& library, const FunctionRef& function,
    const OpRegistry& ops, const GraphVersions& versions, absl::string_view prefix = "");

// Returns a string that is equal for two functions if and only if their names and attributes are
// equal.
std::string FunctionKey(const FunctionRef& function);

// Defines a function from a graph built for this purpose, and adds it to the library of `graph`:
//
//   Graph body;
//   Output x = Placeholder(body, DT_FLOAT);
//   DefineFunction(graph, "square", body, {x}, {Mul(x, x)});
//
// `args` are nodes with a single output, which become the function's arguments. All other nodes of
// `body` become nodes of the function. Types are fixed. Returns INVALID_ARGUMENT if the graph
// already has a different function of that name.
absl::Status DefineFunction(Graph& graph, absl::string_view name, const Graph& body,
                            const Outputs& args, const Outputs& results,
                            const std::vector<Operation>& effects = {});

}  // namespace weir

#endif  // WEIR_CORE_IO_FUNCTION_LIBRARY_H_
