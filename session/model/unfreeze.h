#ifndef WEIR_SESSION_MODEL_UNFREEZE_H_
#define WEIR_SESSION_MODEL_UNFREEZE_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/session/model/meta_graph.h"

// Unfreezing: a graph whose weights are variables again, to train on.
namespace WEIR_API weir {

// Options of UnfreezeGraph.
struct UnfreezeOptions {
  // The names of the floating-point constants that become variables, as patterns of the shell:
  // "conv*/weights", in which '*' also matches '/'. Without patterns: the weights (WeightsOf).
  std::vector<std::string> patterns = {};
  // Nodes that get a value, such as the paths of a model's assets.
  std::vector<std::pair<Output, Tensor>> values = {};
  // Tensors of these signatures that are constants become reads of the variables.
  std::map<std::string, Signature>* signatures = nullptr;
};

// Returns the constants of a graph that are weights of a network: floating-point ones of more than
// one element that are an operand of a matrix product or a convolution, the table of a gather, the
// scale or offset of a batch normalization, an argument of a function, or a vector that is added to
// one of these products. A constant counts that passes through Identity or, unchanged, into a loop:
// also into a While or For whose body returns it unchanged. One inside a function's body does not.
// The statistics of a batch normalization are no weights: an optimizer does not train them.
std::vector<const Node*> WeightsOf(const Graph& graph);

// Returns a copy of the graph, with its collections, in which constants are resource variables. A
// variable has the name of its constant, and its initializer assigns the constant's value; a node
// that took the constant reads the variable. Each is in the collections "variables" and
// "trainable_variables". All other nodes keep their names.
//
//   WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph, UnfreezeGraph(frozen));
//   ... Gradients(loss, TrainableVariables(*graph)) ...
//   session.Run({}, {}, {GlobalVariablesInitializer(*graph)});
//
// NOT_FOUND if a pattern matches no constant of floating point, or if there are no patterns and the
// graph has no weights. Constants that wait for a node, such as those inside a loop, stay.
absl::StatusOr<std::unique_ptr<Graph>> UnfreezeGraph(const Graph& graph,
                                                     const UnfreezeOptions& options = {});

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_UNFREEZE_H_
