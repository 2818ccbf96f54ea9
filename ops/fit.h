#ifndef WEIR_OPS_FIT_H_
#define WEIR_OPS_FIT_H_

#include "weir/core/graph.h"
#include "weir/ops/array.h"

// Builders that fit something simple to data: centers to points, a monotone sequence to numbers.
// The last argument is the name.
namespace weir {

// Of each point (a row) the k nearest centers (rows), nearest first; all if there are fewer.
struct Neighbors {
  Output indices;    // int64, [points, k]
  Output distances;  // squared
};
Neighbors NearestNeighbors(Output points, Output centers, const Ints& k,
                           absl::string_view name = {});

// `count` of the points (rows), to begin k-means with: each is drawn with a probability in
// proportion to its squared distance from those drawn before it. Of 1 + `retries` draws the best
// one stays; negative: as many as the literature says, 2 + log(count).
Output KmeansPlusPlusInitialization(Output points, const Ints& count, const Ints& seed,
                                    const Ints& retries, absl::string_view name = {});

// The index that a Markov chain over these squared distances arrives at, which goes on from one to
// the next with probability next / current: an approximation of one such draw.
Output Kmc2ChainInitialization(Output distances, const Ints& seed, absl::string_view name = {});

// The sequence that never rises and is nearest, in squares, to each row of x (its last dimension);
// differentiable. float or double as x has it, wide enough for integers.
Output IsotonicRegression(Output x, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_FIT_H_
