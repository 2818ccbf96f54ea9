#ifndef WEIR_TESTS_SESSION_TEST_MODELS_H_
#define WEIR_TESTS_SESSION_TEST_MODELS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/graph.h"
#include "weir/ops/while_loop.h"
#include "weir/session/session.h"

// Models that sessions of all kinds must compute alike: small, but with what makes a plan hard
// (state, random draws, sparse gradients, branches, shapes that change from step to step). They are
// known by the names of their nodes, so that they can be run after a graph has been written and
// read back.
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
// While loops: values that change places, that grow, that are big; loops and conditionals in loops;
// a variable that an iteration reads and writes. How often they go round changes from step to step.
TestModel AddLoops(Graph& graph);
// Calls and loops of functions, in one another, as TensorFlow 2 has them: values that grow, a
// variable that they read, one that an iteration writes.
TestModel AddFunctions(Graph& graph);
// `length` nodes, each an op drawn from `seed` of values that are there already. Two are fetched.
TestModel AddRandomOps(Graph& graph, uint32_t seed, int length);

// A while loop whose body runs `times` times; `body` sees and returns `vars` only. Empty if the
// graph refuses the loop.
Outputs RepeatedBody(Graph& graph, const Output& times, const LoopBodyFn& body, const Outputs& vars,
                     const WhileOptions& options = {});

// What the steps fetched, and last the state. Step i has a batch of batches[i].
absl::StatusOr<std::vector<Tensors>> RunModel(Session& session, const TestModel& model,
                                              const std::vector<int64_t>& batches);

// Empty if all elements are bit for bit the same (tolerance 0), or floating ones differ by at most
// `tolerance` * (1 + magnitude), more for types of 16 bits; else the first difference in words.
std::string Difference(const std::vector<Tensors>& got, const std::vector<Tensors>& want,
                       double tolerance);

}  // namespace weir

#endif  // WEIR_TESTS_SESSION_TEST_MODELS_H_
