// Fourier transforms of lines of many lengths, compared with the sums that define them.

#include <cmath>
#include <complex>
#include <numbers>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "weir/core/runtime/thread_pool.h"
#include "weir/kernels/linalg/fft.h"
#include "weir/kernels/linalg/unit_roots.h"

namespace weir::fft {
namespace {

using Wide = std::complex<long double>;

template <class T>
std::vector<T> Random(int64_t n) {
  std::mt19937 random(static_cast<uint32_t>(n));
  std::normal_distribution<T> values;
  std::vector<T> out(static_cast<size_t>(n));
  for (T& x : out) x = values(random);
  return out;
}

// The exact roots of unity of one order.
class Roots {
 public:
  explicit Roots(int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
      const long double angle = 2 * std::numbers::pi_v<long double> * static_cast<long double>(k) /
                                static_cast<long double>(n);
      roots_.emplace_back(std::cos(angle), -std::sin(angle));
    }
  }
  // Returns the sum of in(j) exp(-2 pi i j k / n).
  template <class In>
  Wide Sum(int64_t k, const In& in) const {
    const int64_t n = static_cast<int64_t>(roots_.size());
    Wide sum = 0;
    for (int64_t j = 0, at = 0; j < n; ++j) {
      sum += in(j)*roots_[static_cast<size_t>(at)];
      at += k;
      if (at >= n) at -= n;
    }
    return sum;
  }

 private:
  std::vector<Wide> roots_;
};

// Some of the frequencies below n, the first and the last ones among them.
std::vector<int64_t> SomeOf(int64_t n) {
  std::vector<int64_t> some;
  const int64_t step = n <= 300 ? 1 : n / 7;
  for (int64_t k = 0; k < n; k += step) some.push_back(k);
  if (some.back() != n - 1) some.push_back(n - 1);
  return some;
}

// Short lengths; factors of all kinds, large primes, lengths that are split, and divided.
std::vector<int64_t> LengthsFrom(int64_t least) {
  std::vector<int64_t> lengths;
  for (int64_t n = least; n <= 200; ++n) lengths.push_back(n);
  for (const int64_t n : {243,  256,  263,  289,  343,  508,  512,  625,  1000,  1009,  1024,
                          1331, 2018, 2047, 2048, 2310, 3125, 4096, 8191, 10007, 65536, 131070}) {
    lengths.push_back(n);
  }
  return lengths;
}

// A row's transform may differ from the exact one by a few roundings per pass.
template <class T>
double Allowed(int64_t n) {
  const double size = static_cast<double>(n);
  return 4 * std::numeric_limits<T>::epsilon() * std::sqrt(size) * (2 + std::log2(size));
}

template <class T>
void ExpectComplexRows(ThreadPool& pool, int64_t n, int64_t rows, bool inverse) {
  const LineTransform<T> transform(n, Kind::kComplex, Use::kRows);
  const int64_t pitch = 2 * n + 2;  // the input is wider than the transform
  const std::vector<T> in = Random<T>(rows * pitch);
  std::vector<T> out(static_cast<size_t>(rows * 2 * n));
  transform.TransformRows(pool, in.data(), pitch, out.data(), 2 * n, rows, inverse, T(0.5));
  const Roots roots(n);
  for (int64_t row = 0; row < rows; row += rows - 1 + (rows == 1)) {
    for (const int64_t k : SomeOf(n)) {
      const T* const x = in.data() + row * pitch;
      const Wide sum = roots.Sum(inverse ? (n - k) % n : k,
                                 [&](int64_t j) { return Wide(x[2 * j], x[2 * j + 1]); });
      const T* const y = out.data() + row * 2 * n + 2 * k;
      ASSERT_LE(std::abs(Wide(y[0], y[1]) - sum / 2.0L), Allowed<T>(n))
          << "row " << row << ", frequency " << k;
    }
  }
}

template <class T>
void ExpectRealRows(ThreadPool& pool, int64_t n, int64_t rows) {
  const LineTransform<T> there(n, Kind::kFromReal, Use::kRows);
  const LineTransform<T> back(n, Kind::kToReal, Use::kRows);
  const int64_t half = n / 2 + 1;
  const std::vector<T> in = Random<T>(rows * n);
  std::vector<T> out(static_cast<size_t>(rows * 2 * half)), again(in.size());
  there.TransformRows(pool, in.data(), n, out.data(), 2 * half, rows, false, 1);
  const Roots roots(n);
  for (int64_t row = 0; row < rows; row += rows - 1 + (rows == 1)) {
    for (const int64_t k : SomeOf(half)) {
      const Wide sum = roots.Sum(k, [&](int64_t j) { return Wide(in[row * n + j]); });
      const T* const y = out.data() + row * 2 * half + 2 * k;
      ASSERT_LE(std::abs(Wide(y[0], y[1]) - sum), Allowed<T>(n)) << row << ", " << k;
    }
  }
  // Imaginary parts that a real transform does not have are ignored.
  for (int64_t row = 0; row < rows; ++row) {
    out[row * 2 * half + 1] = 7;
    if (n % 2 == 0) out[row * 2 * half + 2 * half - 1] = -7;
  }
  back.TransformRows(pool, out.data(), 2 * half, again.data(), n, rows, true,
                     1 / static_cast<T>(n));
  for (size_t i = 0; i < in.size(); ++i) {
    ASSERT_NEAR(again[i], in[i], Allowed<T>(n) / std::sqrt(static_cast<double>(n)) * 4) << i;
  }
}

template <class T>
class FftLines : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(FftLines, Precisions);

TYPED_TEST(FftLines, RowsOfComplexNumbers) {
  ThreadPool pool(2);
  for (const int64_t n : LengthsFrom(1)) {
    SCOPED_TRACE(n);
    for (const int64_t rows :
         n <= 2048 ? std::vector<int64_t>{1, 3, 19} : std::vector<int64_t>{2}) {
      ExpectComplexRows<TypeParam>(pool, n, rows, rows == 3);
    }
  }
}

TYPED_TEST(FftLines, RowsOfRealNumbers) {
  ThreadPool pool(2);
  for (const int64_t n : LengthsFrom(1)) {
    SCOPED_TRACE(n);
    for (const int64_t rows :
         n <= 2048 ? std::vector<int64_t>{1, 3, 19} : std::vector<int64_t>{2}) {
      ExpectRealRows<TypeParam>(pool, n, rows);
    }
  }
}

// In place too. The columns of the last block do not fill the vectors.
TYPED_TEST(FftLines, ColumnsAreLines) {
  using T = TypeParam;
  ThreadPool pool(2);
  for (const int64_t n : {1, 2, 3, 8, 30, 131, 137, 512, 2052}) {
    for (const int64_t inner : {1, 2, 16, 21}) {
      for (const bool inverse : {false, true}) {
        SCOPED_TRACE(testing::Message() << n << " x " << inner << ", inverse: " << inverse);
        const LineTransform<T> columns(n, Kind::kComplex, Use::kColumns);
        const LineTransform<T> rows(n, Kind::kComplex, Use::kRows);
        const std::vector<T> in = Random<T>(2 * 2 * n * inner);
        std::vector<T> out(in.size()), in_place = in;
        columns.TransformColumns(pool, in.data(), out.data(), 2, inner, inverse);
        columns.TransformColumns(pool, in_place.data(), in_place.data(), 2, inner, inverse);
        EXPECT_EQ(in_place, out);
        std::vector<T> line(static_cast<size_t>(2 * n)), expected(line.size());
        for (int64_t column = 0; column < 2 * inner; ++column) {
          const int64_t at = 2 * (column / inner * n * inner + column % inner);
          for (int64_t i = 0; i < 2 * n; ++i) line[i] = in[at + i / 2 * 2 * inner + i % 2];
          rows.TransformRows(pool, line.data(), 2 * n, expected.data(), 2 * n, 1, inverse, 1);
          for (int64_t i = 0; i < 2 * n; ++i) {
            ASSERT_NEAR(out[at + i / 2 * 2 * inner + i % 2], expected[i], Allowed<T>(n)) << column;
          }
        }
      }
    }
  }
}

TEST(FftThreads, BitsDoNotDependOnThem) {
  ThreadPool one(1), three(3);
  for (const int64_t n : {int64_t{64}, int64_t{1000}, int64_t{65536}, int64_t{65537}}) {
    for (const Kind kind : {Kind::kComplex, Kind::kFromReal, Kind::kToReal}) {
      const LineTransform<float> transform(n, kind, Use::kRows);
      const int64_t rows = n < 2000 ? 100 : 2;
      const std::vector<float> in = Random<float>(rows * 2 * n + 2 * rows);
      std::vector<float> a(in.size()), b(in.size());
      transform.TransformRows(one, in.data(), 2 * n + 2, a.data(), 2 * n + 2, rows, false, 1);
      transform.TransformRows(three, in.data(), 2 * n + 2, b.data(), 2 * n + 2, rows, false, 1);
      EXPECT_EQ(a, b) << n;
    }
  }
}

// A few long columns are divided, which one thread or several do.
TEST(FftThreads, BitsOfColumnsDoNotDependOnThem) {
  ThreadPool one(1), three(3);
  for (const int64_t n : {int64_t{64}, int64_t{65536}, int64_t{65537}}) {
    const LineTransform<float> columns(n, Kind::kComplex, Use::kColumns);
    const LineTransform<float> rows(n, Kind::kComplex, Use::kRows);
    for (const int64_t inner : {1, 3}) {
      const std::vector<float> in = Random<float>(2 * n * inner);
      std::vector<float> a(in.size()), b(in.size());
      columns.TransformColumns(one, in.data(), a.data(), 1, inner, false);
      columns.TransformColumns(three, in.data(), b.data(), 1, inner, false);
      EXPECT_EQ(a, b) << n;
      if (inner > 1) continue;
      rows.TransformRows(one, in.data(), 2 * n, b.data(), 2 * n, 1, false, 1);
      double error = 0;
      for (size_t i = 0; i < a.size(); ++i)
        error = std::max(error, static_cast<double>(std::abs(a[i] - b[i])));
      EXPECT_LT(error, 1e-6 * static_cast<double>(n)) << n;
    }
  }
}

TYPED_TEST(FftLines, RootsAreRounded) {
  using T = TypeParam;
  for (const int64_t n : {1, 2, 3, 4, 7, 8, 12, 1000, 4093, 65536}) {
    const UnitRoots<T> root(n);
    for (int64_t k = 0; k < n; ++k) {
      const long double angle = 2 * std::numbers::pi_v<long double> * static_cast<long double>(k) /
                                static_cast<long double>(n);
      const std::complex<T> w = root(k);
      const T allowed = std::numeric_limits<T>::epsilon() * T(0.51);
      ASSERT_NEAR(static_cast<double>(w.real() - std::cos(angle)), 0, allowed) << n << ", " << k;
      ASSERT_NEAR(static_cast<double>(w.imag() + std::sin(angle)), 0, allowed) << n << ", " << k;
      if (4 * k % n == 0) {
        EXPECT_EQ(w.real() * w.imag(), 0) << n << ", " << k;
      }
    }
  }
}

}  // namespace
}  // namespace weir::fft
