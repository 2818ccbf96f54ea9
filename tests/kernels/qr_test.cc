#include <cmath>
#include <complex>

#include "gtest/gtest.h"
#include "tests/evaluate.h"
#include "weir/ops/array.h"
#include "weir/ops/random.h"

namespace weir {
namespace {

using Complex = std::complex<double>;

// A random matrix as complex numbers, in the given type.
Tensor RandomMatrix(DataType type, const Shape& shape, uint32_t seed) {
  Tensor t(type, shape);
  const auto next = [&seed] {
    seed = seed * 1664525u + 1013904223u;
    return static_cast<double>(seed >> 8) / (1 << 23) - 1;
  };
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const double re = next(), im = next();
    if (type == DT_FLOAT) t.data<float>()[i] = static_cast<float>(re);
    if (type == DT_DOUBLE) t.data<double>()[i] = re;
    if (type == DT_COMPLEX128) t.data<Complex>()[i] = Complex(re, im);
  }
  return t;
}

Complex At(const Tensor& t, int64_t i) {
  return t.dtype() == DT_FLOAT    ? t.data<float>()[i]
         : t.dtype() == DT_DOUBLE ? t.data<double>()[i]
                                  : t.data<Complex>()[i];
}

struct Factors {
  Tensor q, r;
};
absl::StatusOr<Factors> Qr(const Tensor& a, bool full) {
  Graph g;
  Node* node = AddNode("Qr", {Const(g, a)}, {{"full_matrices", full}});
  if (node == nullptr) return g.status();
  WEIR_ASSIGN_OR_RETURN(Tensors out, Evaluate(g, {node->output(0), node->output(1)}));
  EXPECT_EQ(out[0].shape(), node->output_shape(0));
  EXPECT_EQ(out[1].shape(), node->output_shape(1));
  return Factors{out[0], out[1]};
}

void ExpectFactors(const Tensor& a, bool full, double tolerance) {
  SCOPED_TRACE(testing::Message() << a.Description() << (full ? " full" : ""));
  const auto qr = Qr(a, full);
  ASSERT_TRUE(qr.ok()) << qr.status();
  const int64_t m = a.dim(-2), n = a.dim(-1), k = full ? m : std::min(m, n),
                batches = a.num_elements() / (m * n);
  for (int64_t b = 0; b < batches; ++b) {
    const auto q = [&](int64_t i, int64_t j) { return At(qr->q, b * m * k + i * k + j); };
    const auto r = [&](int64_t i, int64_t j) { return At(qr->r, b * k * n + i * n + j); };
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        Complex product = 0;
        for (int64_t l = 0; l < k; ++l) product += q(i, l) * r(l, j);
        EXPECT_LT(std::abs(product - At(a, b * m * n + i * n + j)), tolerance);
      }
    }
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j < k; ++j) {
        Complex dot = 0;
        for (int64_t l = 0; l < m; ++l) dot += std::conj(q(l, i)) * q(l, j);
        EXPECT_LT(std::abs(dot - Complex(i == j)), tolerance);
      }
      for (int64_t j = 0; j < std::min(i, n); ++j) EXPECT_EQ(r(i, j), Complex(0));
    }
  }
}

TEST(Qr, FactorsEveryShapeAndType) {
  const std::pair<DataType, double> types[] = {
      {DT_FLOAT, 1e-5}, {DT_DOUBLE, 1e-13}, {DT_COMPLEX128, 1e-13}};
  for (const auto& [type, tolerance] : types) {
    for (const Shape& shape :
         {Shape{1, 1}, Shape{5, 5}, Shape{7, 3}, Shape{3, 7}, Shape{2, 3, 4, 4}}) {
      for (const bool full : {false, true})
        ExpectFactors(RandomMatrix(type, shape, 17), full, tolerance);
    }
  }
}

TEST(Qr, ZeroColumnsAndTriangularMatricesAreFine) {
  ExpectFactors(Tensor::Zeros(DT_DOUBLE, {3, 2}), false, 1e-15);
  ExpectFactors(Tensor::Of<double>({2, 2}, {1, 2, 0, 3}), true, 1e-15);
}

TEST(Qr, EmptyMatricesGiveEmptyFactors) {
  const auto qr = Qr(Tensor(DT_FLOAT, {2, 0, 3}), false);
  ASSERT_TRUE(qr.ok()) << qr.status();
  EXPECT_EQ(qr->q.shape(), Shape({2, 0, 0}));
  EXPECT_EQ(qr->r.shape(), Shape({2, 0, 3}));
}

TEST(Qr, VectorsAreInvalid) {
  EXPECT_EQ(Qr(Tensor::Vector<float>({1, 2}), false).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace weir
