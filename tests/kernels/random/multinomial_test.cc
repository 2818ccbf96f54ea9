#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "weir/kernels/lib/philox.h"
#include "weir/tests/evaluate.h"

// StatelessMultinomial against one serial loop over the words of its stream: the threads that draw
// for some rows each must begin at the right word.
namespace weir {
namespace {

void ExpectDraws(int64_t rows, int64_t classes, int32_t samples) {
  SCOPED_TRACE(testing::Message() << rows << " " << classes << " " << samples);
  Tensor logits(DT_FLOAT, Shape({rows, classes}));
  for (int64_t i = 0; i < logits.num_elements(); ++i)
    logits.data<float>()[i] = static_cast<float>(3 * std::sin(0.7 * static_cast<double>(i)));
  const auto out = RunFed("StatelessMultinomial", {logits, Tensor::Scalar<int32_t>(samples),
                                                   Tensor::Vector<int64_t>({3, 5})});
  ASSERT_TRUE(out.ok()) << out.status();
  PhiloxWords words(PhiloxFromSeed(3, 5));
  for (int64_t r = 0; r < rows; ++r) {
    const float* const row = logits.data<float>() + r * classes;
    const double max = *std::max_element(row, row + classes);
    std::vector<double> sums;
    double total = 0;
    for (int64_t j = 0; j < classes; ++j)
      sums.push_back(total += std::exp(static_cast<double>(row[j]) - max));
    for (int32_t s = 0; s < samples; ++s) {
      const uint32_t high = words(), low = words();
      const double wanted = UnitDouble(high, low) * total;
      ASSERT_EQ((*out)[0].flat<int64_t>()[r * samples + s],
                std::upper_bound(sums.begin(), sums.end(), wanted) - sums.begin())
          << "row " << r << ", sample " << s;
    }
  }
}

TEST(Multinomial, DrawsOneStreamOnAllThreads) {
  for (const int32_t samples : {1, 2, 3, 100}) {
    for (const int64_t classes : {1, 2, 3, 7, 64, 1000}) ExpectDraws(100, classes, samples);
  }
  ExpectDraws(5000, 10, 1);
  ExpectDraws(1, 10, 5000);
  // Some numbers fall so close to one of many sums that only exact sums tell them apart.
  ExpectDraws(1, 1 << 20, 20000);
}

TEST(Multinomial, GivesRowsWithoutFiniteLogitsTheNumberOfClasses) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto out = RunFed("StatelessMultinomial",
                          {Tensor::Vector<float>({inf, -inf, std::nanf("")}).Reshaped({1, 3}),
                           Tensor::Scalar<int32_t>(2), Tensor::Vector<int64_t>({3, 5})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].flat<int64_t>()[0], 3);
  EXPECT_EQ((*out)[0].flat<int64_t>()[1], 3);
}

}  // namespace
}  // namespace weir
