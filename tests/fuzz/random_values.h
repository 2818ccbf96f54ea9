#ifndef WEIR_TESTS_FUZZ_RANDOM_VALUES_H_
#define WEIR_TESTS_FUZZ_RANDOM_VALUES_H_

#include <random>
#include <string>
#include <vector>

#include "weir/core/tensor.h"

namespace weir::fuzz {

// Values of the kinds that graphs hold, mostly ordinary and sometimes of the kind that breaks
// programs: zero, negative, enormous, not a number. Equal seeds give equal values.
class RandomValues {
 public:
  explicit RandomValues(uint64_t seed) : words_(seed) {}

  // Of [0, n), for n > 0.
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
  // Of at most five dimensions, and seldom more than a few thousand elements.
  std::vector<int64_t> Dims();
  // INVALID for types of which no constant can be made (resources, variants).
  Tensor Value(DataType type);

 private:
  std::mt19937_64 words_;
};

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_RANDOM_VALUES_H_
