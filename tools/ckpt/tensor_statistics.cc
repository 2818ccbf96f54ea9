#include "weir/tools/ckpt/tensor_statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "weir/tools/ckpt/convert_elements.h"
#include "weir/tools/ckpt/output.h"

namespace weir::tools {

namespace {

// Calls visit(values) for each piece of the tensor.
template <class Visit>
absl::Status ForEachPiece(CheckpointReader& reader, const CheckpointTensor& tensor, Visit visit) {
  std::vector<double> values;
  return CopyElements(CopyOf(reader, tensor), [&](absl::string_view piece) {
    values.resize(piece.size() / ElementSize(tensor.dtype));
    ToDoubles(tensor.dtype, piece.data(), values.data(), values.size());
    visit(values);
    return absl::OkStatus();
  });
}

// Mean and sum of squared deviations of the finite elements so far. Pieces are combined as Chan,
// Golub and LeVeque do ("Updating formulae and a pairwise algorithm for computing sample
// variances", 1979), without the cancellation of a sum of squares.
struct Moments {
  double count = 0, mean = 0, squares = 0;

  void Add(const std::vector<double>& finite) {
    if (finite.empty()) return;
    Moments piece;
    piece.count = static_cast<double>(finite.size());
    for (const double x : finite) piece.mean += x / piece.count;
    for (const double x : finite) piece.squares += (x - piece.mean) * (x - piece.mean);
    const double delta = piece.mean - mean, total = count + piece.count;
    squares += piece.squares + delta * delta * count / total * piece.count;
    mean += delta * piece.count / total;
    count = total;
  }
};

}  // namespace

absl::StatusOr<TensorStatistics> ComputeStatistics(CheckpointReader& reader,
                                                   const CheckpointTensor& tensor, int bins) {
  TensorStatistics out;
  Moments moments;
  std::vector<double> finite;
  WEIR_RETURN_IF_ERROR(ForEachPiece(reader, tensor, [&](const std::vector<double>& values) {
    finite.clear();
    for (const double x : values) {
      if (std::isfinite(x)) finite.push_back(x);
      if (std::isnan(x)) ++out.nans;
      if (x == HUGE_VAL) ++out.positive_infinities;
      if (x == -HUGE_VAL) ++out.negative_infinities;
      if (x == 0) ++out.zeros;
    }
    if (!finite.empty()) {
      const auto [min, max] = std::minmax_element(finite.begin(), finite.end());
      out.min = moments.count == 0 ? *min : std::min(out.min, *min);
      out.max = moments.count == 0 ? *max : std::max(out.max, *max);
    }
    moments.Add(finite);
    out.elements += static_cast<int64_t>(values.size());
  }));
  if (moments.count == 0) return out;
  out.mean = moments.mean;
  out.deviation = std::sqrt(moments.squares / moments.count);
  // Halves, because the width of the range may overflow.
  const double half_width = out.max / 2 - out.min / 2;
  if (bins == 0 || half_width == 0) return out;
  out.histogram.assign(static_cast<size_t>(bins), 0);
  WEIR_RETURN_IF_ERROR(ForEachPiece(reader, tensor, [&](const std::vector<double>& values) {
    for (const double x : values) {
      if (!std::isfinite(x)) continue;
      const double place = (x / 2 - out.min / 2) / half_width * bins;
      ++out.histogram[std::min(static_cast<size_t>(place), out.histogram.size() - 1)];
    }
  }));
  return out;
}

}  // namespace weir::tools
