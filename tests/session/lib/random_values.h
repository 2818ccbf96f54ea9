#ifndef WEIR_TESTS_SESSION_LIB_RANDOM_VALUES_H_
#define WEIR_TESTS_SESSION_LIB_RANDOM_VALUES_H_

#include <random>

#include "weir/core/tensor/tensor.h"

namespace weir {

// Returns floats distributed uniformly over [low, high).
inline Tensor UniformFloats(const Shape& shape, std::mt19937& random, float low = -1,
                            float high = 1) {
  std::uniform_real_distribution<float> values(low, high);
  Tensor t(DT_FLOAT, shape);
  for (float& f : t.flat<float>()) f = values(random);
  return t;
}

}  // namespace weir

#endif  // WEIR_TESTS_SESSION_LIB_RANDOM_VALUES_H_
