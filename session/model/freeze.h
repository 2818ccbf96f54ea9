#ifndef WEIR_SESSION_MODEL_FREEZE_H_
#define WEIR_SESSION_MODEL_FREEZE_H_

#include <memory>
#include <utility>
#include <vector>

#include "weir/core/tensor/api.h"
#include "weir/session/session.h"

// Freezing: a graph whose variables are constants, for inference.
namespace WEIR_API weir {

// Options of FreezeGraph.
struct FreezeOptions {
  // Nodes to keep besides the outputs, with everything that they need; for example the initializer
  // of a table.
  std::vector<Operation> targets = {};
  // Tensors that get a value for good, such as the placeholder that says whether a network trains.
  // A conditional whose predicate they decide becomes the branch that it takes.
  std::vector<std::pair<Output, Tensor>> values = {};
  bool clear_devices = false;
};

// Returns a new graph that computes `outputs`, of the session's graph, from constants. Each
// variable becomes a Const of the same name with its present value, and nodes that the outputs do
// not need are left out. The result equals that of TensorFlow's freeze_graph and
// convert_variables_to_constants, for graphs with either kind of variables, with loops and
// conditionals of either form, and with functions; other nodes keep their names. A frozen graph
// needs no checkpoint, and its session can store every weight in the layout that its kernels
// prefer.
//
//   WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> frozen, FreezeGraph(session, {logits}));
//   WEIR_RETURN_IF_ERROR(WriteGraphFile(*frozen, "model.pb"));
//
// Writes to variables that only order what follows them are left out, such as the step of a random
// number generator of a layer for training. Tables and other state besides variables are not
// frozen. They must be initialized as before, by operations that are kept if they are among the
// targets.
//
// clang-format off
//   INVALID_ARGUMENT     no outputs; an output of another graph; a value of another type, or for a node with
//                        more than one output
//   FAILED_PRECONDITION  a variable has no value (name); an output needs a node that writes to one; without
//                        targets, a table has entries that are not from an initializer (name)
//   UNIMPLEMENTED        a node uses a variable in a way that a constant does not support (name)
// clang-format on
absl::StatusOr<std::unique_ptr<Graph>> FreezeGraph(Session& session, const Outputs& outputs,
                                                   const FreezeOptions& options = {});

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_FREEZE_H_
