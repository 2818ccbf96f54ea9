#ifndef WEIR_OPS_CONTROL_FLOW_H_
#define WEIR_OPS_CONTROL_FLOW_H_

#include <string>
#include <vector>

#include "weir/core/graph.h"

// Order and choice: nodes that make others wait, that pass a value on to one of two branches, that
// join branches, that check and that print. Errors stick to the graph, and give an invalid result.
namespace weir {

Operation NoOp(Graph& graph, absl::string_view name = {});
// Runs after all of `ops` (tf.group): a NoOp "group_deps" with control inputs, or one for each
// device and one after those.
Operation Group(Graph& graph, const std::vector<Operation>& ops, absl::string_view name = {});
// `x`, once all of `ops` have run: an Identity "control_dependency" beside x.
Output WithDependencies(const std::vector<Operation>& ops, Output x, absl::string_view name = {});
// The tensors, each available only when all are (tf.tuple). Invalid ones stay so.
Outputs Tuple(Graph& graph, const Outputs& tensors);
Operation ControlTrigger(Graph& graph, absl::string_view name = {});

// The value comes out on one side; the other side is dead, and so is all that depends on it.
struct SwitchResult {
  Output on_false, on_true;
};
SwitchResult Switch(Output data, Output pred, absl::string_view name = {});
// The first of its inputs that is alive, and which it was.
struct MergeResult {
  Output output, value_index;
};
MergeResult Merge(const Outputs& inputs, absl::string_view name = {});

// Loops: a value enters a frame, goes round, and leaves it.
struct EnterOptions {
  bool is_constant = false;
  int64_t parallel_iterations = 10;
};
Output Enter(Output data, absl::string_view frame_name, const EnterOptions& options = {},
             absl::string_view name = {});
Output Exit(Output data, absl::string_view name = {});
Output NextIteration(Output data, absl::string_view name = {});
Output LoopCond(Output input, absl::string_view name = {});

// Fails the run with INVALID_ARGUMENT "assertion failed: [...]" showing `data` (`summarize`
// elements of each), if `condition` is false.
Operation Assert(Output condition, const Outputs& data, int64_t summarize = 3,
                 absl::string_view name = {});
struct PrintOptions {
  std::string message = {};
  int64_t first_n = -1;  // only the first so many times; -1: always
  int64_t summarize = 3;
};
// x; writes `data` to stderr when run.
Output Print(Output x, const Outputs& data, const PrintOptions& options = {},
             absl::string_view name = {});
// Writes a string to "stderr", "stdout", or "file://<path>".
Operation PrintV2(Output text, absl::string_view output_stream = "stderr",
                  absl::string_view end = "\n", absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_CONTROL_FLOW_H_
