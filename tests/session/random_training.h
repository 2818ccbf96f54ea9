#ifndef WEIR_TESTS_SESSION_RANDOM_TRAINING_H_
#define WEIR_TESTS_SESSION_RANDOM_TRAINING_H_

#include <cstdint>

#include "weir/tests/session/test_models.h"

namespace weir {

// A training step drawn from `seed`: `length` values made of one another in the ways that the
// plan rewrites (element-wise ops on matrices, columns, rows and scalars, comparisons, tiled and
// filled tensors, sums and maxima along both axes, matrix products; softmaxes, layer norms and
// losses spelled out in small ops, whole or in parts), the gradients of a loss, and an update of
// each variable by an optimizer, or spelled out, before, between or after other reads of it.
// What is fetched is drawn too. The graph is the same for every `noise`, the values fed are not:
// results that are apart because rounding has turned a comparison are so for one noise alone.
TestModel AddRandomTraining(Graph& graph, uint32_t seed, int length, uint32_t noise = 0);

}  // namespace weir

#endif  // WEIR_TESTS_SESSION_RANDOM_TRAINING_H_
