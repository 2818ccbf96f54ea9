#ifndef WEIR_TOOLS_CKPT_TENSOR_STATISTICS_H_
#define WEIR_TOOLS_CKPT_TENSOR_STATISTICS_H_

#include <vector>

#include "weir/core/io/bundle.h"

namespace weir::tools {

// Statistics of a tensor of plain type; of magnitudes if it is complex. Minimum, maximum, mean and
// standard deviation (of the population) are those of the finite elements; they are 0 if there is
// none.
struct TensorStatistics {
  int64_t elements = 0, nans = 0, positive_infinities = 0, negative_infinities = 0, zeros = 0;
  double min = 0, max = 0, mean = 0, deviation = 0;
  // The numbers of finite elements in ranges of equal width from min to max; empty if all finite
  // elements are equal.
  std::vector<int64_t> histogram;
};

// Reads the tensor in pieces: once, or with `bins` > 0 a second time for the histogram.
absl::StatusOr<TensorStatistics> ComputeStatistics(CheckpointReader& reader,
                                                   const CheckpointTensor& tensor, int bins);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_TENSOR_STATISTICS_H_
