#ifndef WEIR_TESTS_SESSION_LIB_RANDOM_MODELS_H_
#define WEIR_TESTS_SESSION_LIB_RANDOM_MODELS_H_

#include <cstdint>

#include "weir/tests/session/lib/test_models.h"

// Random models, built from the patterns that a plan rewrites. A graph depends only on `seed` and
// `length`; the fed values also on `noise`: results that differ because rounding has changed a
// comparison do so for one value of `noise` only.
namespace weir {

// A training step: `length` values computed from one another (elementwise ops on matrices, columns,
// rows and scalars, comparisons, tiled and filled tensors, sums and maxima along both axes, matrix
// products, branches, loops; softmaxes, layer norms and losses decomposed into small ops, entirely
// or in part), the gradients of a loss, and an update of each variable by an optimizer, or
// decomposed, before, between or after other reads of it. The fetches are random too.
TestModel AddRandomTraining(Graph& graph, uint32_t seed, int length, uint32_t noise = 0);

// Images and `length` layers: convolutions of all kinds with their prologues and epilogues, pools,
// sums and concatenations with earlier layers, weighted and shuffled channels. Weights are
// constants, variables, or trained variables.
TestModel AddRandomConvNet(Graph& graph, uint32_t seed, int length, uint32_t noise = 0);

// `length` values of nested branches and loops: of numbers, of matrices, of captured values and
// variables; arrays that an iteration writes to. Some models include the gradient.
TestModel AddRandomControlFlow(Graph& graph, uint32_t seed, int length, uint32_t noise = 0);

// `length` tensors of all types, computed from one another: arithmetic, moved, sliced,
// concatenated, gathered, selected by value, sparse, as text; with variables, some also passed
// through a queue.
TestModel AddRandomTensors(Graph& graph, uint32_t seed, int length, uint32_t noise = 0);

}  // namespace weir

#endif  // WEIR_TESTS_SESSION_LIB_RANDOM_MODELS_H_
