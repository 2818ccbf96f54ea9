// Float products by our own GEMM, compared with sums in double.

#include "weir/kernels/linalg/gemm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "weir/core/runtime/thread_pool.h"
#include "weir/kernels/linalg/matmul.h"

namespace weir {
namespace {

std::vector<float> Random(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-1, 1);
  std::vector<float> out(static_cast<size_t>(n));
  for (float& f : out) f = values(random);
  return out;
}

struct Product {
  explicit Product(const MatMulArgs& args)
      : g(args), a(Random(g.m * g.k, 1)), b(Random(g.k * g.n, 2)), c(Random(g.m * g.n, 3)) {}

  gemm::Matrix Left() const { return {a.data(), g.transpose_a ? 1 : g.k, g.transpose_a ? g.m : 1}; }
  gemm::Matrix Right() const {
    return {b.data(), g.transpose_b ? 1 : g.n, g.transpose_b ? g.k : 1};
  }
  // `was`: the addend; null if there is none. `rounding`: additional relative tolerance.
  void Expect(const std::vector<float>& got, const std::vector<float>* was,
              double rounding = 0) const {
    const gemm::Matrix x = Left(), y = Right();
    const double allowed = 2e-6 * std::sqrt(static_cast<double>(g.k)) + 1e-6;
    for (int64_t i = 0; i < g.m; ++i) {
      for (int64_t j = 0; j < g.n; ++j) {
        double sum = was != nullptr ? (*was)[i * g.n + j] : 0;
        for (int64_t k = 0; k < g.k; ++k)
          sum += double{x.data[i * x.row + k * x.column]} * y.data[k * y.row + j * y.column];
        ASSERT_NEAR(got[i * g.n + j], sum, allowed + rounding * std::abs(sum))
            << "at " << i << ", " << j;
      }
    }
  }

  MatMulArgs g;
  std::vector<float> a, b, c;
};

void ForEachProduct(const std::vector<MatMulArgs>& sizes,
                    const std::function<void(const Product&)>& check) {
  for (MatMulArgs g : sizes) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        g.transpose_a = transpose_a;
        g.transpose_b = transpose_b;
        SCOPED_TRACE(testing::Message()
                     << g.m << " x " << g.k << (transpose_a ? ", transposed, " : ", ") << "by "
                     << g.n << (transpose_b ? ", transposed" : ""));
        check(Product(g));
      }
    }
  }
}

MatMulArgs Sizes(int64_t m, int64_t k, int64_t n) { return {.m = m, .n = n, .k = k}; }

TEST(Gemm, MultipliesAndAccumulates) {
  ForEachProduct({Sizes(1, 1, 1), Sizes(6, 4, 16), Sizes(7, 31, 17), Sizes(5, 513, 15),
                  Sizes(13, 8, 33), Sizes(97, 100, 3), Sizes(200, 3, 64), Sizes(12, 1100, 40),
                  Sizes(103, 1024, 70), Sizes(25, 512, 20)},
                 [](const Product& p) {
                   std::vector<float> packed(
                       static_cast<size_t>(gemm::Panels(p.g.n) * p.g.k * gemm::PanelColumns()));
                   gemm::Pack(p.Right(), p.g.k, 0, p.g.n, packed.data());
                   std::vector<float> scratch(
                       static_cast<size_t>(gemm::ScratchFloats(p.Left(), p.g.m, p.g.k)));
                   for (const bool adds : {false, true}) {
                     std::vector<float> c = p.c;
                     gemm::Multiply(p.Left(), p.g.m, p.g.k, packed.data(), p.g.n, adds, c.data(),
                                    p.g.n, scratch.data());
                     p.Expect(c, adds ? &p.c : nullptr);
                   }
                 });
}

// Starts at a column that is not a panel boundary. Expects identical bits, and the panels that Pack
// produces.
TEST(Gemm, PacksWhileMultiplying) {
  constexpr int64_t kFirst = 5;
  ForEachProduct({Sizes(1, 1, 6), Sizes(6, 4, 21), Sizes(7, 31, 40), Sizes(13, 8, 37),
                  Sizes(97, 100, 69), Sizes(200, 3, 69), Sizes(25, 1100, 43), Sizes(5, 600, 70)},
                 [](const Product& p) {
                   const int64_t columns = p.g.n - kFirst;
                   const size_t floats =
                       static_cast<size_t>(gemm::Panels(columns) * p.g.k * gemm::PanelColumns());
                   std::vector<float> packed(floats), on_the_way(floats);
                   gemm::Pack(p.Right(), p.g.k, kFirst, columns, packed.data());
                   std::vector<float> scratch(
                       static_cast<size_t>(gemm::ScratchFloats(p.Left(), p.g.m, p.g.k)));
                   const std::vector<float> bias = Random(columns, 4);
                   for (const bool adds : {false, true}) {
                     const gemm::Epilogue finish = {bias.data(), -2, 2};
                     std::vector<float> c = p.c, expected = p.c;
                     gemm::Multiply(p.Left(), p.g.m, p.g.k, packed.data(), columns, adds,
                                    expected.data(), p.g.n, scratch.data(), finish);
                     gemm::PackAndMultiply(p.Left(), p.g.m, p.g.k, p.Right(), kFirst, columns,
                                           on_the_way.data(), adds, c.data(), p.g.n, scratch.data(),
                                           finish);
                     EXPECT_EQ(c, expected);
                     EXPECT_EQ(on_the_way, packed);
                   }
                 });
}

// Bias and bounds in whole panels, in panels of one vector, and in others. NaN propagates.
TEST(Gemm, AppliesTheEpilogue) {
  for (const bool adds : {false, true}) {
    for (const int64_t columns : {16, 8, 24, 32, 16 + 5, 3, 64 + 48}) {
      for (const int64_t depth : {1, 20, 600}) {
        Product p(Sizes(14, depth, columns));
        p.a[3 * depth] = std::numeric_limits<float>::quiet_NaN();
        const std::vector<float> bias = Random(columns, 4);
        std::vector<float> packed(
            static_cast<size_t>(gemm::Panels(columns) * depth * gemm::PanelColumns()));
        gemm::Pack(p.Right(), depth, 0, columns, packed.data());
        std::vector<float> scratch(
            static_cast<size_t>(gemm::ScratchFloats(p.Left(), p.g.m, depth)));
        std::vector<float> plain = p.c, finished = p.c;
        gemm::Multiply(p.Left(), p.g.m, depth, packed.data(), columns, adds, plain.data(), columns,
                       scratch.data());
        gemm::Multiply(p.Left(), p.g.m, depth, packed.data(), columns, adds, finished.data(),
                       columns, scratch.data(), {bias.data(), -0.25f, 0.5f});
        for (int64_t i = 0; i < p.g.m * columns; ++i) {
          const float y = finished[i], sum = plain[i] + bias[i % columns];
          SCOPED_TRACE(testing::Message()
                       << columns << " columns, depth " << depth << ", at " << i);
          if (i / columns == 3) {
            EXPECT_TRUE(std::isnan(y));
          } else {
            EXPECT_NEAR(y, std::clamp(sum, -0.25f, 0.5f), 1e-5f * (1 + std::abs(sum)));
          }
        }
      }
    }
  }
}

// Some columns of B and C, starting at a panel boundary; the adjacent columns stay unchanged.
TEST(Gemm, WritesOnlyItsColumns) {
  const Product p(Sizes(9, 21, 4 * gemm::PanelColumns() + 5));
  const int64_t first = gemm::PanelColumns(), columns = 2 * gemm::PanelColumns() + 1;
  std::vector<float> packed(
      static_cast<size_t>(gemm::Panels(columns) * p.g.k * gemm::PanelColumns()));
  gemm::Pack(p.Right(), p.g.k, first, columns, packed.data());
  std::vector<float> c = p.c;
  gemm::Multiply(p.Left(), p.g.m, p.g.k, packed.data(), columns, false, c.data() + first, p.g.n,
                 nullptr);
  for (int64_t i = 0; i < p.g.m; ++i) {
    for (int64_t j = 0; j < p.g.n; ++j) {
      if (j < first || j >= first + columns) {
        EXPECT_EQ(c[i * p.g.n + j], p.c[i * p.g.n + j]);
        double sum = 0;
        for (int64_t k = 0; k < p.g.k; ++k) sum += double{p.a[i * p.g.k + k]} * p.b[k * p.g.n + j];
        c[i * p.g.n + j] = static_cast<float>(sum);
      }
    }
  }
  p.Expect(c, nullptr);
}

// Products through RunMatMul and AddMatMul, which choose the algorithm by size, with threads.
void ExpectProducts(const std::vector<MatMulArgs>& sizes) {
  ForEachProduct(sizes, [](const Product& p) {
    for (const int threads : {1, 3}) {
      ThreadPool pool(threads);
      std::vector<float> c = p.c, sum = p.c;
      ASSERT_TRUE(RunMatMul(pool, DT_FLOAT, p.g, p.a.data(), p.b.data(), c.data()).ok());
      p.Expect(c, nullptr);
      ASSERT_TRUE(AddMatMul(pool, p.g, p.a.data(), p.b.data(), sum.data()).ok());
      p.Expect(sum, &p.c);
    }
  });
}

TEST(MatMul, MediumSizes) {
  ExpectProducts({Sizes(128, 32, 16), Sizes(131, 65, 200), Sizes(300, 128, 67),
                  Sizes(257, 33, 1000), Sizes(512, 300, 128), Sizes(20, 300, 500)});
}

// B is used in place.
TEST(MatMul, FewRows) {
  for (int64_t rows = 1; rows < 9; ++rows) {
    ExpectProducts({Sizes(rows, 700, 600), Sizes(rows, 1, 40000), Sizes(rows, 40000, 1),
                    Sizes(rows, 1037, 129), Sizes(rows, 5, 9001), Sizes(rows, 9003, 7)});
  }
}

// B is packed one block at a time: tails of blocks, panels and vectors.
TEST(MatMul, SomeRows) {
  ExpectProducts({Sizes(9, 1100, 70), Sizes(33, 513, 520), Sizes(127, 40, 90), Sizes(100, 31, 1500),
                  Sizes(1000, 20, 30), Sizes(64, 2000, 10), Sizes(700, 64, 3), Sizes(129, 700, 12),
                  Sizes(40, 9, 4000), Sizes(12, 3000, 24)});
}

// Uses bfloat16 instructions if the processor has them: as many pieces as a thread pool needs, and
// tails that are no multiple of any vector width.
TEST(MatMul, Bfloat16) {
  ForEachProduct(
      {Sizes(20, 40, 24), Sizes(256, 300, 192), Sizes(131, 515, 201), Sizes(5, 900, 1001)},
      [](const Product& p) {
        const std::vector<bfloat16> a(p.a.begin(), p.a.end()), b(p.b.begin(), p.b.end());
        Product rounded = p;
        rounded.a.assign(a.begin(), a.end());
        rounded.b.assign(b.begin(), b.end());
        for (const int threads : {1, 3}) {
          ThreadPool pool(threads);
          std::vector<bfloat16> c(p.c.size(), bfloat16(7.f));
          ASSERT_TRUE(RunMatMul(pool, DT_BFLOAT16, p.g, a.data(), b.data(), c.data()).ok());
          rounded.Expect({c.begin(), c.end()}, nullptr, 1. / 256);
        }
      });
}

}  // namespace
}  // namespace weir
