#ifndef WEIR_OPS_RANDOM_RANDOM_H_
#define WEIR_OPS_RANDOM_RANDOM_H_

#include <optional>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/lib/array.h"

// Builders of random tensors: TensorFlow's random_ops and stateless_random_ops, with TensorFlow's
// node names and random streams: the same seeds produce the same numbers. The seeds of a stateful
// op come from Graph::NextSeed, which combines the graph's seed and the op's. With neither, each
// session draws different numbers.
namespace WEIR_API weir {

// Options of RandomUniform.
struct RandomUniformOptions {
  // The interval [min, max). Default: [0, 1). Integer types require a maximum.
  std::optional<double> min = {}, max = {};
  DataType dtype = DT_FLOAT;         // of the result; an integer type, or floating-point
  std::optional<int64_t> seed = {};  // of the op; unset: see above
};
// Returns a tensor of this shape with uniformly distributed elements.
Output RandomUniform(Graph& graph, const Ints& shape, const RandomUniformOptions& options = {},
                     absl::string_view name = {});

// Options of RandomNormal and TruncatedNormal.
struct RandomNormalOptions {
  double mean = 0, stddev = 1;       // of the distribution
  DataType dtype = DT_FLOAT;         // of the result, floating-point
  std::optional<int64_t> seed = {};  // of the op; unset: see above
};
// Returns a tensor of this shape with normally distributed elements.
Output RandomNormal(Graph& graph, const Ints& shape, const RandomNormalOptions& options = {},
                    absl::string_view name = {});
// Values more than two standard deviations from the mean are drawn again.
Output TruncatedNormal(Graph& graph, const Ints& shape, const RandomNormalOptions& options = {},
                       absl::string_view name = {});

// Returns the rows of `value` (along dimension 0) in random order.
Output RandomShuffle(Output value, std::optional<int64_t> seed = {}, absl::string_view name = {});

// Options of Multinomial.
struct MultinomialOptions {
  DataType output_dtype = DT_INT64;  // int32 or int64
  std::optional<int64_t> seed = {};  // of the op; unset: see above
};
// Draws num_samples column indices for each row of the matrix `logits` (unnormalized
// log-probabilities).
Output Multinomial(Output logits, const Ints& num_samples, const MultinomialOptions& options = {},
                   absl::string_view name = {});

// Stateless: the result depends only on `seed`, a vector of two integers.
Output StatelessRandomUniform(Output seed, const Ints& shape,
                              const RandomUniformOptions& options = {},
                              absl::string_view name = {});
Output StatelessRandomNormal(Output seed, const Ints& shape,
                             const RandomNormalOptions& options = {}, absl::string_view name = {});
Output StatelessTruncatedNormal(Output seed, const Ints& shape,
                                const RandomNormalOptions& options = {},
                                absl::string_view name = {});

// Options of SobolSample.
struct SobolSampleOptions {
  DataType dtype = DT_FLOAT;  // of the result: float or double
};
// Returns points of the Sobol sequence of dimension `dim` (1 to 21200), with the direction numbers
// of Joe and Kuo (2008): [num_results, dim], in the unit cube. The first `skip` points are left
// out; the origin is none of them. All three are scalars of type int32.
Output SobolSample(Output dim, Output num_results, Output skip,
                   const SobolSampleOptions& options = {}, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_RANDOM_RANDOM_H_
