#ifndef WEIR_SESSION_FREEZE_H_
#define WEIR_SESSION_FREEZE_H_

#include <memory>
#include <vector>

#include "weir/session/session.h"

namespace weir {

struct FreezeOptions {
  // What is kept besides, with all that it needs: what fills a table, say.
  std::vector<Operation> targets = {};
  bool clear_devices = false;
};

// A graph of its own that computes `outputs`, of the session's graph, from constants: each variable
// is a Const of its name with the value that it has now, and what the outputs do not need is left
// out. What TensorFlow's freeze_graph and convert_variables_to_constants make, for graphs with
// either kind of variables, with loops and conditionals of either form, and with functions; other
// nodes keep their names. Made once, it needs no checkpoint, and its session has every weight in
// the form that its kernels like best.
//
//   WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> frozen, FreezeGraph(session, {logits}));
//   WEIR_RETURN_IF_ERROR(WriteGraphFile(*frozen, "model.pb"));
//
// Tables and other state that is no variable stay what they are, and must be made ready as before,
// by operations that are kept if they are among the targets.
//
// clang-format off
//   INVALID_ARGUMENT     no outputs; an output of another graph
//   FAILED_PRECONDITION  a variable has no value (name); an output needs a node that writes to a variable
//   UNIMPLEMENTED        a node that uses a variable in a way that a constant does not have: with its name
// clang-format on
absl::StatusOr<std::unique_ptr<Graph>> FreezeGraph(Session& session, const Outputs& outputs,
                                                   const FreezeOptions& options = {});

}  // namespace weir

#endif  // WEIR_SESSION_FREEZE_H_
