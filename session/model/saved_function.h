#ifndef WEIR_SESSION_MODEL_SAVED_FUNCTION_H_
#define WEIR_SESSION_MODEL_SAVED_FUNCTION_H_

#include <optional>
#include <string>
#include <vector>

#include "weir/core/tensor/api.h"
#include "weir/session/model/meta_graph.h"

// The functions of a SavedModel of TensorFlow 2: the methods of its objects, which a program calls
// by name. Those that are exported as signatures are a small part of them, or none.
namespace WEIR_API weir {

// A function as it was traced for one set of dtypes and shapes. A Python function that was traced
// several times is several of these, with one name.
struct SavedFunction {
  // An argument or a result.
  struct Value {
    std::string name;  // of an argument: as in Python; of a result: its key, or "output_0"
    DataType dtype = DT_INVALID;         // of the tensor
    Shape shape = Shape::UnknownRank();  // as far as it is known
    // Of an argument that a caller may omit.
    std::optional<Tensor> default_value = std::nullopt;
  };
  std::string name;            // the objects' attributes that lead to it: "encoder.encode"
  std::string function;        // in the graph's function library
  std::vector<Value> inputs;   // without what the function has captured
  std::vector<Value> results;  // None has no result
  // The graph's tensor for each value that the function has captured, such as the handle of a
  // variable, as the last arguments. "": the graph has none.
  std::vector<std::string> captures;
};

// Lists the functions, each by its shortest name, in the order of the objects: those of the model
// itself first. Signatures are not among them. Empty for a model of TensorFlow 1. That of a
// malformed model ends before it has more than 256 MiB.
// The second form takes the ObjectTensors of the model, for callers that have them.
std::vector<SavedFunction> SavedFunctionsOf(const proto::MetaGraphDef& def);
std::vector<SavedFunction> SavedFunctionsOf(const proto::MetaGraphDef& def,
                                            const std::vector<std::string>& tensors);

// Adds a placeholder for each argument and a call of the function to the graph that holds the
// model. The signature names them: run it like one of the model's own. While a session uses the
// graph, call this within Session::Extend.
//   UNIMPLEMENTED     the function has captured a value for which the graph has no tensor
//   NOT_FOUND         a tensor that it has captured is not in the graph
//   INVALID_ARGUMENT  the graph's library has no such function, or one of other arguments
absl::StatusOr<Signature> CallSavedFunction(Graph& graph, const SavedFunction& function);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_SAVED_FUNCTION_H_
