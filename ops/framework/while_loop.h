#ifndef WEIR_OPS_FRAMEWORK_WHILE_LOOP_H_
#define WEIR_OPS_FRAMEWORK_WHILE_LOOP_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/lib/array.h"

// Loops that run inside a step (tf.while_loop of TensorFlow 1).
namespace WEIR_API weir {

// Options of WhileLoop.
struct WhileOptions {
  // The shapes that the loop variables have in all iterations, one per variable. Default: their
  // initial shapes. Less specific shapes allow a variable to change its shape.
  std::optional<std::vector<Shape>> shape_invariants = {};
  // At least 1. Recorded in the graph for other runtimes; Weir runs iterations sequentially.
  int64_t parallel_iterations = 10;
  // The maximum number of iterations, regardless of the condition: an int32 scalar.
  std::optional<Ints> maximum_iterations = {};
  std::string name = "while";
};

// Starts with `loop_vars`, and replaces them by the results of `body` as long as `cond`, a bool
// scalar, is true. Returns their last values. Both functions are called once, during graph
// construction; the nodes that they build run once per iteration. They may use tensors and
// variables from outside of the loop. Control dependencies from outside apply to the loop as a
// whole. Variables created inside are placed outside of the loop.
//
//   Outputs r = WhileLoop([&](const Outputs& v) { return v[0] < 10; },
//                         [&](const Outputs& v) { return Outputs{v[0] + 1, v[1] * 2.f}; }, {i, x});
//
// INVALID_ARGUMENT on the graph if there are no variables, or if `body` returns a different number
// of tensors, a different type or a shape that is incompatible with the variable's. A failed loop
// returns as many invalid outputs as it has variables.
using LoopCondFn = std::function<Output(const Outputs& vars)>;
using LoopBodyFn = std::function<Outputs(const Outputs& vars)>;
Outputs WhileLoop(const LoopCondFn& cond, const LoopBodyFn& body, const Outputs& loop_vars,
                  const WhileOptions& options = {});

}  // namespace weir

#endif  // WEIR_OPS_FRAMEWORK_WHILE_LOOP_H_
