#ifndef WEIR_OPS_LINALG_FIT_H_
#define WEIR_OPS_LINALG_FIT_H_

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/lib/array.h"

// Builders that fit simple models to data: cluster centers to points, a monotone sequence to
// numbers. The last argument is the name.
namespace WEIR_API weir {

// Returns the k nearest centers (rows) of each point (row), nearest first; all centers if there are
// fewer than k.
struct Neighbors {
  Output indices;    // int64, [points, k]
  Output distances;  // squared
};
// Returns the k nearest of the centers (rows) for each of the points (rows), nearest first.
Neighbors NearestNeighbors(Output points, Output centers, const Ints& k,
                           absl::string_view name = {});

// Selects `count` of the points (rows) as initial centers for k-means. Each is drawn with a
// probability proportional to its squared distance from the centers drawn before it. Of 1 +
// `retries` draws the best is kept; a negative `retries` uses the number from the literature, 2 +
// log(count).
Output KmeansPlusPlusInitialization(Output points, const Ints& count, const Ints& seed,
                                    const Ints& retries, absl::string_view name = {});

// Returns the index that a Markov chain over these squared distances reaches, which moves from one
// index to the next with probability next / current: an approximation of one such draw.
Output Kmc2ChainInitialization(Output distances, const Ints& seed, absl::string_view name = {});

// Returns the non-increasing sequence that is nearest, in the least-squares sense, to each row of x
// (its last dimension). Differentiable. The result has the dtype of x if it is float or double,
// otherwise a floating-point dtype wide enough for the integers.
Output IsotonicRegression(Output x, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_LINALG_FIT_H_
