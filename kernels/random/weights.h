#ifndef WEIR_KERNELS_RANDOM_WEIGHTS_H_
#define WEIR_KERNELS_RANDOM_WEIGHTS_H_

#include <cstdint>

// Weights of categories from their logits, by vectors.
namespace weir {

// Returns the largest of n logits that is finite; the lowest double if there is none.
double LargestFinite(const float* logits, int64_t n);
double LargestFinite(const double* logits, int64_t n);

// weights[i] = e^(logits[i] - max) for i < n; 0 where that is below e^-700, and for infinite and
// NaN logits. No finite logit is above `max`. The relative error is at most 2^-48. Returns the sum
// of the weights, in an order that depends on the processor. Logits and weights may be the same.
double ExpBelow(double max, const float* logits, int64_t n, double* weights);
double ExpBelow(double max, const double* logits, int64_t n, double* weights);

}  // namespace weir

#endif  // WEIR_KERNELS_RANDOM_WEIGHTS_H_
