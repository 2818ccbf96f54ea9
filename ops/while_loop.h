#ifndef WEIR_OPS_WHILE_LOOP_H_
#define WEIR_OPS_WHILE_LOOP_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weir/core/graph.h"
#include "weir/ops/array.h"

// Loops that run in the step (tf.while_loop of TensorFlow 1).
namespace weir {

struct WhileOptions {
  // The shapes that the variables have in all iterations, by variable; default: those that they
  // enter with. Less specific ones allow a variable to change its shape.
  std::optional<std::vector<Shape>> shape_invariants = {};
  // At least 1. Kept in the graph for other runtimes; here iterations run one after another.
  int64_t parallel_iterations = 10;
  // Stops after so many, whatever the condition: an int32 scalar.
  std::optional<Ints> maximum_iterations = {};
  std::string name = "while";
};

// Starts with `loop_vars`, and as long as `cond` of the variables, a bool scalar, is true, replaces
// them by `body` of them. Gives their last values. Both functions are called once, now; what they
// build runs once an iteration. They may use tensors and variables from outside. Control
// dependencies from outside hold for the loop as a whole; variables made inside lie outside of it.
//
//   Outputs r = WhileLoop([&](const Outputs& v) { return v[0] < 10; },
//                         [&](const Outputs& v) { return Outputs{v[0] + 1, v[1] * 2.f}; }, {i, x});
//
// INVALID_ARGUMENT on the graph if there are no variables, if `body` returns another number of
// tensors, another type or a shape that is not the variable's. A loop that fails gives as many
// invalid outputs as it has variables.
using LoopCondFn = std::function<Output(const Outputs& vars)>;
using LoopBodyFn = std::function<Outputs(const Outputs& vars)>;
Outputs WhileLoop(const LoopCondFn& cond, const LoopBodyFn& body, const Outputs& loop_vars,
                  const WhileOptions& options = {});

}  // namespace weir

#endif  // WEIR_OPS_WHILE_LOOP_H_
