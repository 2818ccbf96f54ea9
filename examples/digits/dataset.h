#ifndef WEIR_EXAMPLES_DIGITS_DATASET_H_
#define WEIR_EXAMPLES_DIGITS_DATASET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "weir/core/tensor/status.h"
#include "weir/core/tensor/tensor.h"

namespace digits {

inline constexpr int kSide = 8, kPixels = kSide * kSide, kClasses = 10;

// Images with their labels: float [n, 8, 8, 1] in 0..1, and int64 [n].
struct Examples {
  weir::Tensor images, labels;
  int64_t size() const { return labels.num_elements(); }
  // Returns the examples at these positions, in this order.
  Examples Pick(const std::vector<int64_t>& positions) const;
};

struct Dataset {
  Examples train, test;
};

// Reads the gzipped CSV file and splits it, shuffled with a fixed seed, into four fifths for
// training and one fifth for testing. NOT_FOUND if there is no such file, DATA_LOSS if it is
// malformed.
absl::StatusOr<Dataset> LoadDigits(const std::string& path);

// Returns the order in which an epoch visits n examples. It depends only on the epoch, so that a
// resumed run continues as an uninterrupted one would.
std::vector<int64_t> EpochOrder(int64_t n, int64_t epoch);

}  // namespace digits

#endif  // WEIR_EXAMPLES_DIGITS_DATASET_H_
