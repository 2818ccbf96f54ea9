#ifndef WEIR_TESTS_SESSION_RANDOM_MODELS_H_
#define WEIR_TESTS_SESSION_RANDOM_MODELS_H_

#include <cstdint>

#include "weir/tests/session/test_models.h"

// Models drawn at random, made of what a plan rewrites. A graph depends on `seed` and `length`
// alone, the values fed on `noise` as well: results that are apart because rounding has turned a
// comparison are so for one noise alone.
namespace weir {

// A training step: `length` values made of one another (element-wise ops on matrices, columns, rows
// and scalars, comparisons, tiled and filled tensors, sums and maxima along both axes, matrix
// products, branches, loops; softmaxes, layer norms and losses spelled out in small ops, whole or
// in parts), the gradients of a loss, and an update of each variable by an optimizer, or spelled
// out, before, between or after other reads of it. What is fetched is drawn too.
TestModel AddRandomTraining(Graph& graph, uint32_t seed, int length, uint32_t noise = 0);

// Images and `length` layers: convolutions of all kinds with what precedes and follows them, pools,
// sums and concatenations with earlier layers, channels that are weighted and shuffled. Weights are
// constants, variables, or variables that are trained.
TestModel AddRandomConvNet(Graph& graph, uint32_t seed, int length, uint32_t noise = 0);

// `length` values of branches and loops in one another: of numbers, of matrices, of what outside
// values and variables are in them; arrays that an iteration writes to. In some the gradient.
TestModel AddRandomControlFlow(Graph& graph, uint32_t seed, int length, uint32_t noise = 0);

// `length` tensors of all types, made of one another: arithmetic, moved, cut, joined, gathered,
// chosen by what is in them, sparse, as text; with variables, some put through a queue as well.
TestModel AddRandomTensors(Graph& graph, uint32_t seed, int length, uint32_t noise = 0);

}  // namespace weir

#endif  // WEIR_TESTS_SESSION_RANDOM_MODELS_H_
