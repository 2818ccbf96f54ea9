#ifndef WEIR_TESTS_SESSION_LIB_TEST_MODELS_H_
#define WEIR_TESTS_SESSION_LIB_TEST_MODELS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/session/session.h"

// Models that sessions of all kinds must compute alike: small, but with features that are difficult
// to plan (state, random numbers, sparse gradients, branches, shapes that change from step to
// step). They are described by the names of their nodes, so that they can be run after a graph has
// been written and read.
namespace weir {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

struct TestModel {
  std::string init;                           // run first; empty: nothing to initialize
  std::vector<std::string> fetches, targets;  // of each step
  std::vector<std::string> state;             // fetched after the last step
  std::function<NamedTensors(int step, int64_t batch)> feeds;
};

// conv, batch norm with moving averages, pooling, dropout, an embedding with sparse gradients, two
// dense layers; Adam, a global step.
TestModel AddConvNet(Graph& graph);
// Three dense layers, weight decay; momentum with a learning rate that decays.
TestModel AddMlp(Graph& graph);
// An LSTM over six steps in a while loop, its last output fit to a target; gradient descent.
TestModel AddRecurrentNet(Graph& graph);
// Switch and Merge, nested, on conditions that change from step to step, with a variable that is
// counted in one of the branches.
TestModel AddBranches(Graph& graph);
// While loops: values that are exchanged, that grow, that are large; nested loops and conditionals;
// a variable that an iteration reads and writes. The number of iterations changes from step to
// step.
TestModel AddLoops(Graph& graph);
// Nested calls and loops of functions, as TensorFlow 2 builds them: values that grow, a variable
// that they read, one that an iteration writes.
TestModel AddFunctions(Graph& graph);
// `length` nodes, each a random op (from `seed`) on existing values. Two are fetched.
TestModel AddRandomOps(Graph& graph, uint32_t seed, int length);

// A while loop whose body runs `times` times; `body` receives and returns `vars` only. Empty if the
// graph rejects the loop.
Outputs RepeatedBody(Graph& graph, const Output& times, const LoopBodyFn& body, const Outputs& vars,
                     const WhileOptions& options = {});

// Returns the fetches of the steps, followed by the state. Step i has a batch of batches[i].
absl::StatusOr<std::vector<Tensors>> RunModel(Session& session, const TestModel& model,
                                              const std::vector<int64_t>& batches);

// Returns empty if all elements are equal bit for bit (tolerance 0), or floating-point ones differ
// by at most `tolerance` * (1 + magnitude), more for 16-bit types; else a description of the first
// difference.
std::string Difference(const std::vector<Tensors>& got, const std::vector<Tensors>& want,
                       double tolerance);

}  // namespace weir

#endif  // WEIR_TESTS_SESSION_LIB_TEST_MODELS_H_
