#ifndef WEIR_SESSION_MODEL_EXTRACT_FUNCTION_H_
#define WEIR_SESSION_MODEL_EXTRACT_FUNCTION_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/graph/graph.h"

// Functions from parts of a graph, as TensorFlow 2 traces them: a function takes its inputs, and
// then what it has captured, such as the handles of variables.
namespace weir {

// The part of a graph that becomes a function.
struct FunctionPart {
  std::string name;                                    // of the function
  std::vector<std::pair<std::string, Output>> inputs;  // the arguments, and what they stand for
  Outputs results = {};                                // none: the function returns an int32 1
  std::vector<Operation> effects = {};                 // run in every call
};

// Nodes whose output 0 a function captures, and the node whose output 0 it captures in their place:
// itself, or another node with the same state.
using CapturedNodes = std::map<const Node*, Node*>;

// Defines the function in the library of `out`. Returns the nodes that it has captured, which are
// its last arguments, in this order. Reference variables become resource variables: the function
// captures a handle, and reads it where the graph reads the reference.
//
// clang-format off
//   INVALID_ARGUMENT     the part needs a placeholder that is no input (name)
//   FAILED_PRECONDITION  a node writes to a reference variable (name)
//   UNIMPLEMENTED        a node uses a reference in another way (name)
// clang-format on
absl::StatusOr<std::vector<Node*>> ExtractFunction(const Graph& graph, const FunctionPart& part,
                                                   const CapturedNodes& captured, Graph& out);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_EXTRACT_FUNCTION_H_
