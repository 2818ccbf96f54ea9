#ifndef WEIR_OPS_RANDOM_H_
#define WEIR_OPS_RANDOM_H_

#include <optional>

#include "weir/core/graph.h"
#include "weir/ops/array.h"

// Builders of random tensors: TensorFlow's random_ops and stateless_random_ops, with its node names
// and its streams: the same seeds give the same numbers. The seeds of a stateful op come from
// Graph::NextSeed: the graph's seed and the op's; with neither, every session draws numbers of its
// own.
namespace weir {

struct RandomUniformOptions {
  // The interval [min, max); unset is [0, 1). Integer types need a maximum.
  std::optional<double> min = {}, max = {};
  DataType dtype = DT_FLOAT;
  std::optional<int64_t> seed = {};
};
Output RandomUniform(Graph& graph, const Ints& shape, const RandomUniformOptions& options = {},
                     absl::string_view name = {});

struct RandomNormalOptions {
  double mean = 0, stddev = 1;
  DataType dtype = DT_FLOAT;
  std::optional<int64_t> seed = {};
};
Output RandomNormal(Graph& graph, const Ints& shape, const RandomNormalOptions& options = {},
                    absl::string_view name = {});
// Values beyond two standard deviations are drawn again.
Output TruncatedNormal(Graph& graph, const Ints& shape, const RandomNormalOptions& options = {},
                       absl::string_view name = {});

// The rows of `value` (along dimension 0) in random order.
Output RandomShuffle(Output value, std::optional<int64_t> seed = {}, absl::string_view name = {});

struct MultinomialOptions {
  DataType output_dtype = DT_INT64;
  std::optional<int64_t> seed = {};
};
// For each row of the matrix `logits` (unnormalized log-probabilities) num_samples column numbers.
Output Multinomial(Output logits, const Ints& num_samples, const MultinomialOptions& options = {},
                   absl::string_view name = {});

// Stateless: the result depends on `seed`, a vector of two integers, alone.
Output StatelessRandomUniform(Output seed, const Ints& shape,
                              const RandomUniformOptions& options = {},
                              absl::string_view name = {});
Output StatelessRandomNormal(Output seed, const Ints& shape,
                             const RandomNormalOptions& options = {}, absl::string_view name = {});
Output StatelessTruncatedNormal(Output seed, const Ints& shape,
                                const RandomNormalOptions& options = {},
                                absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_RANDOM_H_
