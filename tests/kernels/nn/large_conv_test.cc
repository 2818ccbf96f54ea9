#include <algorithm>
#include <cstdlib>
#include <vector>

#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"

// Convolutions so large that oneDNN computes them in groups of pieces, which can be cancelled
// (kernels/nn/conv_dnnl.cc).
namespace weir {
namespace {

// Each element of the image is the number of its row, and all gradients are 1: the gradient of a
// tap is the sum of the rows that it sees, once for each column.
TEST(LargeConv, FilterGradientIsTheSumOfAllPieces) {
  constexpr int64_t kSide = 60, kTaps = 5, kChannels = 512, kPad = kTaps / 2;
  Tensor x(DT_FLOAT, Shape({1, kSide, kSide, kChannels})), dy(DT_FLOAT, x.shape());
  for (int64_t row = 0; row < kSide; ++row) {
    const int64_t size = kSide * kChannels;
    std::fill_n(x.data<float>() + row * size, size, static_cast<float>(row));
  }
  std::fill_n(dy.data<float>(), dy.num_elements(), 1.0f);
  const Tensor sizes = Tensor::Vector<int32_t>({kTaps, kTaps, kChannels, kChannels});
  const absl::StatusOr<Tensors> got =
      RunFed("Conv2DBackpropFilter", {x, sizes, dy},
             {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", "SAME"}});
  ASSERT_TRUE(got.ok()) << got.status();
  const Tensor& dw = (*got)[0];
  for (int64_t i = 0; i < kTaps; ++i) {
    for (int64_t j = 0; j < kTaps; ++j) {
      double rows = 0;
      for (int64_t row = 0; row < kSide; ++row) {
        const int64_t seen = row + i - kPad;
        if (seen >= 0 && seen < kSide) rows += static_cast<double>(seen);
      }
      const double want = rows * static_cast<double>(kSide - std::abs(j - kPad));
      const float* const tap = dw.data<float>() + (i * kTaps + j) * kChannels * kChannels;
      for (const int64_t at : {int64_t{0}, kChannels + 1, kChannels * kChannels - 1}) {
        EXPECT_NEAR(tap[at], want, 1e-3 * want) << i << " " << j << " " << at;
      }
    }
  }
}

}  // namespace
}  // namespace weir
