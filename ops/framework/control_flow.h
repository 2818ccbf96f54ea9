#ifndef WEIR_OPS_FRAMEWORK_CONTROL_FLOW_H_
#define WEIR_OPS_FRAMEWORK_CONTROL_FLOW_H_

#include <string>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"

// Control flow: nodes that order execution, switch a value to one of two branches, merge branches,
// check conditions and print. An error is recorded in the graph, and the builder returns an invalid
// result.
namespace WEIR_API weir {

// Adds a node that does nothing; control dependencies order it.
Operation NoOp(Graph& graph, absl::string_view name = {});
// Returns an op that runs after all of `ops` (tf.group): a NoOp "group_deps" with control inputs,
// or one NoOp for each device and one after those.
Operation Group(Graph& graph, const std::vector<Operation>& ops, absl::string_view name = {});
// Returns `x` after all of `ops` have run: an Identity "control_dependency" colocated with x.
Output WithDependencies(const std::vector<Operation>& ops, Output x, absl::string_view name = {});
// Returns the tensors, each available only when all of them are (tf.tuple). Invalid tensors remain
// invalid.
Outputs Tuple(Graph& graph, const Outputs& tensors);
Operation ControlTrigger(Graph& graph, absl::string_view name = {});

// What Switch returns; one of the two is dead.
struct SwitchResult {
  Output on_false, on_true;  // with the type and shape of the data
};
// Forwards the value to one of two outputs, as the bool scalar `pred` says. The other output is
// dead, as is every node that depends on it.
SwitchResult Switch(Output data, Output pred, absl::string_view name = {});
// What Merge returns.
struct MergeResult {
  Output output, value_index;  // value_index: int32 scalar
};
// Returns the first input that is not dead, and its index.
MergeResult Merge(const Outputs& inputs, absl::string_view name = {});

// Options of Enter. A constant (`is_constant`) has its value in every iteration.
// `parallel_iterations` is recorded; Weir runs one after the other.
struct EnterOptions {
  bool is_constant = false;
  int64_t parallel_iterations = 10;
};
// Loops: a value enters a frame, is carried from iteration to iteration, and exits. WhileLoop
// builds loops of these.
Output Enter(Output data, absl::string_view frame_name, const EnterOptions& options = {},
             absl::string_view name = {});
// Takes the value of the last iteration out of its frame.
Output Exit(Output data, absl::string_view name = {});
// Passes a value to the next iteration.
Output NextIteration(Output data, absl::string_view name = {});
// Marks the condition of a loop, a bool scalar.
Output LoopCond(Output input, absl::string_view name = {});

// Fails the step with INVALID_ARGUMENT "assertion failed: [...]", printing `data` (`summarize`
// elements of each), if `condition` is false.
Operation Assert(Output condition, const Outputs& data, int64_t summarize = 3,
                 absl::string_view name = {});
// Options of Print.
struct PrintOptions {
  std::string message = {};  // printed before the values
  int64_t first_n = -1;      // prints only the first N times; -1: always
  int64_t summarize = 3;     // elements of each tensor that are printed; -1: all
};
// Returns x and writes `data` to stderr when run.
Output Print(Output x, const Outputs& data, const PrintOptions& options = {},
             absl::string_view name = {});
// Writes a string to "stderr", "stdout", or "file://<path>".
Operation PrintV2(Output text, absl::string_view output_stream = "stderr",
                  absl::string_view end = "\n", absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_FRAMEWORK_CONTROL_FLOW_H_
