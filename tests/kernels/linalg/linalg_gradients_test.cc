#include "gtest/gtest.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/linalg/linalg.h"
#include "weir/tests/kernels/lib/numeric_gradient.h"

// Gradients checked to order 1 by tests: Eig.

// Gradients checked to order 2 by tests: Cholesky, MatrixSquareRoot, Qr, SelfAdjointEigV2, Svd.

// Gradients of decompositions, and of complex systems. Those of real systems are in
// linalg_cases.cc.
namespace weir {
namespace {

// Returns x as a complex matrix; its two parts are stacked.
Output FromParts(const Output& x) {
  return Complex(StridedSlice(x, {Index(0)}), StridedSlice(x, {Index(1)}));
}
Output PartsOf(const Output& z) { return WeightedSum(Real(z)) + 0.5 * WeightedSum(Imag(z)); }
Output SelfAdjoint(const Output& x) { return x + Adjoint(x); }
Output PositiveDefinite(const Output& x, double n) {
  return MatMul(x, x, {.adjoint_b = true}) + Eye(x.graph(), static_cast<int>(n), {}, x.dtype());
}

TEST(LinalgGradients, Cholesky) {
  ExpectGradient([](Output x) { return WeightedSum(Cholesky(PositiveDefinite(x, 3))); }, {2, 3, 3},
                 2);
  ExpectGradient([](Output x) { return PartsOf(Cholesky(PositiveDefinite(FromParts(x), 3))); },
                 {2, 3, 3}, 1);
}

TEST(LinalgGradients, SelfAdjointEig) {
  // Squares, because the signs of eigenvectors are ambiguous.
  const auto squares = [](Output x) {
    const EigenResult r = SelfAdjointEig(SelfAdjoint(x));
    return WeightedSum(r.e) + WeightedSum(Square(r.v));
  };
  ExpectGradient(squares, {2, 3, 3}, 2);
  ExpectGradient([](Output x) { return WeightedSum(SelfAdjointEigvals(SelfAdjoint(x))); },
                 {2, 3, 3}, 1);
  const auto phaseless = [](Output x) {
    const EigenResult r = SelfAdjointEig(SelfAdjoint(FromParts(x)));
    return WeightedSum(Real(r.e)) + WeightedSum(Square(Abs(r.v)));
  };
  ExpectGradient(phaseless, {2, 3, 3}, 1);
}

TEST(LinalgGradients, Eig) {
  const auto both = [](Output x) {
    const EigenResult r = Eig(x);
    return PartsOf(r.e) + WeightedSum(Square(Abs(r.v)));
  };
  ExpectGradient(both, {3, 3}, 1);
  ExpectGradient([](Output x) { return PartsOf(Eigvals(x)); }, {3, 3}, 1);
}

TEST(LinalgGradients, Svd) {
  const auto all = [](Output x) {
    const SvdResult r = Svd(x);
    return WeightedSum(r.s) + WeightedSum(Square(r.u)) + WeightedSum(Square(r.v));
  };
  for (const Shape& shape : {Shape{3, 3}, Shape{2, 4}, Shape{4, 2}, Shape{2, 3, 2}}) {
    SCOPED_TRACE(shape.ToString());
    ExpectGradient(all, shape, 2, 1e-5);
  }
  ExpectGradient([](Output x) { return WeightedSum(SingularValues(x)); }, {3, 2}, 1);
  const auto full = [](Output x) {
    const SvdResult r = Svd(x, /*full_matrices=*/true);
    return WeightedSum(r.s) + WeightedSum(Square(r.u)) + WeightedSum(Square(r.v));
  };
  ExpectGradient(full, {2, 3}, 1, 1e-5);
  const auto complex = [](Output x) {
    const SvdResult r = Svd(FromParts(x));
    return WeightedSum(r.s) + WeightedSum(Square(Abs(r.u))) + WeightedSum(Square(Abs(r.v)));
  };
  ExpectGradient(complex, {2, 3, 2}, 1, 1e-5);
}

TEST(LinalgGradients, Qr) {
  const auto both = [](Output x) {
    const QrResult r = Qr(x);
    return WeightedSum(r.q) + WeightedSum(r.r);
  };
  for (const Shape& shape : {Shape{3, 3}, Shape{4, 2}, Shape{2, 4}, Shape{2, 3, 2}}) {
    SCOPED_TRACE(shape.ToString());
    ExpectGradient(both, shape, 2, 1e-5);
  }
  const auto complex = [](Output x) {
    const QrResult r = Qr(FromParts(x));
    return PartsOf(r.q) + PartsOf(r.r);
  };
  ExpectGradient(complex, {2, 3, 3}, 1, 1e-5);
}

TEST(LinalgGradients, MatrixSquareRoot) {
  ExpectGradient([](Output x) { return WeightedSum(MatrixSquareRoot(PositiveDefinite(x, 2))); },
                 {2, 2, 2}, 2, 1e-5);
}

// (The determinant of a complex matrix is excluded: it has TensorFlow's gradient, which is not this
// one.)
TEST(LinalgGradients, ComplexSystems) {
  ExpectGradient([](Output x) { return PartsOf(MatrixInverse(FromParts(x))); }, {2, 2, 2}, 1, 1e-5);
  const auto solve = [](Output x) {
    const Output z = FromParts(x);
    return PartsOf(MatrixSolve(z, 2 * z, /*adjoint=*/true));
  };
  ExpectGradient(solve, {2, 2, 2}, 1, 1e-5);
}

// The step chooses one of two formulas at run time.
TEST(LinalgGradients, LeastSquaresOfUnknownShape) {
  Graph g;
  const Output a = Placeholder(g, DT_DOUBLE), b = Placeholder(g, DT_DOUBLE);
  const Output y = ReduceSum(MatrixSolveLs(a, b, 0.5), {0, 1});
  const Outputs grads = DenseGradients({y}, {a, b});
  ASSERT_TRUE(g.status().ok()) << g.status();
  EXPECT_TRUE(grads[0].valid() && grads[1].valid());
}

}  // namespace
}  // namespace weir
