#ifndef WEIR_KERNELS_RANDOM_UNIGRAM_H_
#define WEIR_KERNELS_RANDOM_UNIGRAM_H_

#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/core/runtime/kernel.h"
#include "weir/kernels/lib/philox.h"

// Sampling of classes in proportion to weights, which are fixed or counted from the input.
namespace weir {

// Returns a uniformly distributed integer in [0, n), n > 0: random words that would bias the result
// are drawn again.
template <class Word>
Word UnbiasedUniform(PhiloxWords& words, Word n) {
  const auto next = [&] {
    Word word = words();
    if constexpr (sizeof(Word) == 8) word |= static_cast<Word>(words()) << 32;
    return word;
  };
  if ((n & (n - 1)) == 0) return next() & (n - 1);
  const Word skew = std::numeric_limits<Word>::max() % n + 1;
  Word word = next();
  while (word < skew) word = next();
  return word % n;
}

// Weights of classes [0, n) that all start at 1. A binary tree of sums, which stores only the nodes
// that differ from their initial value.
class CountedClasses {
 public:
  explicit CountedClasses(int64_t n);
  int64_t weight(int64_t value) const { return Sum(0, value); }
  int64_t total() const { return total_; }
  void Increment(int64_t value);
  int64_t Pick(PhiloxWords& words) const;

 private:
  // The sum of the 2^level classes from index * 2^level on.
  int64_t Sum(int level, int64_t index) const;
  static int64_t Key(int level, int64_t index) { return index << 6 | level; }

  const int64_t n_;
  int levels_ = 0;  // of the root
  int64_t total_;
  std::unordered_map<int64_t, int64_t> added_;
};

// A sampler that draws in constant time. Source: Walker, "An efficient method for generating
// discrete random variables with general distributions", 1977: every class has an equal share of
// the interval; the part of its share that a rare class does not need belongs to one common class,
// its alias.
class AliasSampler {
 public:
  explicit AliasSampler(const std::vector<float>& weights);
  int64_t Draw(PhiloxWords& words) const;

 private:
  std::vector<std::pair<float, int32_t>> shares_;  // probability of the class itself, and its alias
};

// The weights of FixedUnigramCandidateSampler, from its attributes or the last columns of a file.
struct UnigramWeights {
  std::vector<float> weights;
  float total = 0;
  static absl::StatusOr<UnigramWeights> Read(const KernelInit& init);
};

}  // namespace weir

#endif  // WEIR_KERNELS_RANDOM_UNIGRAM_H_
