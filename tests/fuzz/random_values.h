#ifndef WEIR_TESTS_FUZZ_RANDOM_VALUES_H_
#define WEIR_TESTS_FUZZ_RANDOM_VALUES_H_

#include <random>
#include <string>
#include <vector>

#include "weir/core/tensor/tensor.h"

namespace weir::fuzz {

// Generates values of the kinds that graphs contain, mostly ordinary and sometimes difficult ones:
// zero, negative, enormous, NaN. Equal seeds generate equal values.
class RandomValues {
 public:
  explicit RandomValues(uint64_t seed) : words_(seed) {}

  // Returns a number in [0, n), for n > 0.
  uint64_t Below(uint64_t n) { return words_() % n; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  template <class T>
  const T& OneOf(const std::vector<T>& choices) {
    return choices[Below(choices.size())];
  }

  int64_t Int();
  double Float();
  std::string Text();
  DataType Type();
  // Returns a shape of at most five dimensions, and rarely more than a few thousand elements.
  std::vector<int64_t> Dims();
  // Returns an invalid tensor for types without constants (resources, variants).
  Tensor Value(DataType type);

 private:
  std::mt19937_64 words_;
};

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_RANDOM_VALUES_H_
