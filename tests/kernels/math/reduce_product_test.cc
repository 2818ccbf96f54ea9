#include <cmath>
#include <cstdint>
#include <type_traits>

#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"

// Prod along each axis of matrices of every width, against a plain loop in double or modulo 2^64.
namespace weir {
namespace {

template <class T, class Wide>
void ExpectProducts(int64_t rows, int64_t columns, double tolerance) {
  SCOPED_TRACE(testing::Message() << DataTypeName(DataTypeOf<T>::value) << " " << rows << "x"
                                  << columns);
  Tensor x(DataTypeOf<T>::value, Shape({rows, columns}));
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    // Numbers around 1, or odd integers, whose products wrap around.
    x.data<T>()[i] =
        static_cast<T>(std::is_integral_v<T> ? static_cast<double>(i % 7 * 2 + 3)
                                             : 1 + 0.1 * std::sin(0.7 * static_cast<double>(i)));
  }
  for (const int32_t axis : {0, 1}) {
    const auto out = RunFed("Prod", {x, Tensor::Scalar<int32_t>(axis)});
    ASSERT_TRUE(out.ok()) << out.status();
    const int64_t results = axis == 0 ? columns : rows, count = axis == 0 ? rows : columns;
    for (int64_t r = 0; r < results; ++r) {
      Wide want = 1;
      for (int64_t k = 0; k < count; ++k)
        want *= static_cast<Wide>(x.data<T>()[axis == 0 ? k * columns + r : r * columns + k]);
      const double got = static_cast<double>((*out)[0].data<T>()[r]),
                   expected = static_cast<double>(static_cast<T>(want));
      ASSERT_NEAR(got, expected, tolerance * std::abs(expected)) << "axis " << axis << ", " << r;
    }
  }
}

TEST(ReduceProduct, MatchesAPlainLoop) {
  for (const int64_t n : {1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100, 1000}) {
    ExpectProducts<float, double>(9, n, 1e-7);
    ExpectProducts<double, double>(9, n, 1e-12);
    ExpectProducts<int32_t, uint64_t>(9, n, 0);
    ExpectProducts<int8_t, uint64_t>(9, n, 0);
  }
}

}  // namespace
}  // namespace weir
