#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/linalg/linalg.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/dense.h"

// Decompositions, checked by their defining properties.
namespace weir {
namespace {

using dense::Matrix;

struct TypeCase {
  DataType type;
  double tolerance;
};
const TypeCase kTypes[] = {
    {DT_FLOAT, 2e-5}, {DT_DOUBLE, 1e-13}, {DT_COMPLEX64, 2e-5}, {DT_COMPLEX128, 1e-13}};

// Pseudorandom numbers in [-1, 1].
Tensor Irregular(DataType type, const Shape& shape) {
  Tensor t(type, shape);
  uint32_t seed = 17;
  const auto next = [&seed] {
    seed = seed * 1664525u + 1013904223u;
    return static_cast<double>(seed >> 8) / (1 << 23) - 1;
  };
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const double re = next(), im = next();
    if (type == DT_HALF) t.data<half>()[i] = half(static_cast<float>(re));
    if (type == DT_FLOAT) t.data<float>()[i] = static_cast<float>(re);
    if (type == DT_DOUBLE) t.data<double>()[i] = re;
    if (type == DT_COMPLEX64) t.data<std::complex<float>>()[i] = {float(re), float(im)};
    if (type == DT_COMPLEX128) t.data<std::complex<double>>()[i] = {re, im};
  }
  return t;
}

Tensors Results(const char* op, const Tensor& x, const Attrs& attrs = {}) {
  Graph g;
  Node* node = AddNode(op, {Const(g, x)}, attrs);
  Outputs outputs;
  for (int i = 0; node != nullptr && i < node->num_outputs(); ++i) {
    outputs.push_back(node->output(i));
  }
  const absl::StatusOr<Tensors> y = Evaluate(g, outputs);
  EXPECT_TRUE(y.ok()) << y.status();
  if (!y.ok() || node == nullptr) return {};
  for (int i = 0; i < node->num_outputs(); ++i) {
    EXPECT_EQ((*y)[static_cast<size_t>(i)].shape(), node->output_shape(i)) << op << " output " << i;
  }
  return *y;
}

void ExpectNear(const Matrix& a, const Matrix& b, double tolerance) {
  EXPECT_LT(dense::LargestDifference(a, b), tolerance);
}
void ExpectUnitary(const Matrix& u, double tolerance) {
  ExpectNear(dense::Multiply(dense::Adjoint(u), u), dense::Identity(u.columns), tolerance);
}
// Returns a matrix with vector b of the batch on its diagonal.
Matrix Diagonal(const Tensor& t, int64_t b, int64_t rows, int64_t columns) {
  Matrix m(rows, columns);
  for (int64_t i = 0; i < t.dim(-1); ++i) m(i, i) = dense::At(t, b * t.dim(-1) + i);
  return m;
}

const Shape kShapes[] = {{1, 1}, {5, 5}, {7, 3}, {3, 7}, {2, 3, 4, 4}};

TEST(Qr, FactorsEveryShapeAndType) {
  for (const auto& [type, tolerance] : kTypes) {
    for (const Shape& shape : kShapes) {
      for (const bool full : {false, true}) {
        SCOPED_TRACE(testing::Message() << DataTypeName(type) << shape.ToString() << full);
        const Tensor a = Irregular(type, shape);
        const Tensors qr = Results("Qr", a, {{"full_matrices", full}});
        ASSERT_EQ(qr.size(), 2u);
        for (int64_t b = 0; b < shape.Sub(0, -2).num_elements(); ++b) {
          const Matrix q = dense::Read(qr[0], b), r = dense::Read(qr[1], b);
          ExpectUnitary(q, tolerance);
          ExpectNear(dense::Multiply(q, r), dense::Read(a, b), tolerance);
          for (int64_t i = 0; i < r.rows; ++i) {
            for (int64_t j = 0; j < std::min(i, r.columns); ++j) EXPECT_EQ(r(i, j), 0.0);
          }
        }
      }
    }
  }
  const Tensors halves = Results("Qr", Irregular(DT_HALF, {3, 3}));
  ASSERT_EQ(halves.size(), 2u);
  ExpectUnitary(dense::Read(halves[0], 0), 0.01);
}

TEST(Qr, EmptyMatricesYieldEmptyFactorsOrIdentities) {
  const Tensors thin = Results("Qr", Tensor(DT_FLOAT, {2, 0, 3}));
  EXPECT_EQ(thin[0].shape(), Shape({2, 0, 0}));
  EXPECT_EQ(thin[1].shape(), Shape({2, 0, 3}));
  const Tensors full = Results("Qr", Tensor(DT_DOUBLE, {2, 0}), {{"full_matrices", true}});
  ExpectNear(dense::Read(full[0], 0), dense::Identity(2), 1e-300);
}

TEST(Svd, FactorsEveryShapeAndType) {
  for (const auto& [type, tolerance] : kTypes) {
    for (const Shape& shape : kShapes) {
      for (const bool full : {false, true}) {
        SCOPED_TRACE(testing::Message() << DataTypeName(type) << shape.ToString() << full);
        const Tensor a = Irregular(type, shape);
        const Tensors svd = Results("Svd", a, {{"full_matrices", full}});
        const Tensors values = Results("Svd", a, {{"compute_uv", false}});
        ASSERT_EQ(svd.size(), 3u);
        for (int64_t b = 0; b < shape.Sub(0, -2).num_elements(); ++b) {
          const Matrix u = dense::Read(svd[1], b), v = dense::Read(svd[2], b);
          const Matrix s = Diagonal(svd[0], b, u.columns, v.columns);
          ExpectUnitary(u, tolerance);
          ExpectUnitary(v, tolerance);
          ExpectNear(dense::Multiply(dense::Multiply(u, s), dense::Adjoint(v)), dense::Read(a, b),
                     2 * tolerance);
          ExpectNear(s, Diagonal(values[0], b, u.columns, v.columns), tolerance);
          for (int64_t i = 1; i < svd[0].dim(-1); ++i) {
            EXPECT_LE(s(i, i).real(), s(i - 1, i - 1).real());
          }
        }
      }
    }
  }
}

TEST(Svd, PropagatesNaN) {
  Tensor a = Irregular(DT_FLOAT, {2, 2});
  a.data<float>()[1] = NAN;
  for (const Tensor& t : Results("Svd", a)) EXPECT_TRUE(std::isnan(t.data<float>()[0]));
}

TEST(Svd, FullVectorsOfEmptyMatricesAreIdentities) {
  const Tensors svd = Results("Svd", Tensor(DT_DOUBLE, {0, 2}), {{"full_matrices", true}});
  EXPECT_EQ(svd[0].shape(), Shape({0}));
  ExpectNear(dense::Read(svd[2], 0), dense::Identity(2), 1e-300);
}

TEST(SelfAdjointEig, SolvesTheLowerTriangle) {
  for (const auto& [type, tolerance] : kTypes) {
    SCOPED_TRACE(DataTypeName(type));
    const Tensor a = Irregular(type, {3, 5, 5});
    const Tensors ev = Results("SelfAdjointEigV2", a);
    const Tensors values = Results("SelfAdjointEigV2", a, {{"compute_v", false}});
    ASSERT_EQ(ev.size(), 2u);
    for (int64_t b = 0; b < 3; ++b) {
      Matrix x = dense::Read(a, b);
      for (int64_t i = 0; i < 5; ++i) {
        x(i, i) = x(i, i).real();
        for (int64_t j = i + 1; j < 5; ++j) x(i, j) = std::conj(x(j, i));
      }
      const Matrix e = Diagonal(ev[0], b, 5, 5), v = dense::Read(ev[1], b);
      ExpectUnitary(v, tolerance);
      ExpectNear(dense::Multiply(x, v), dense::Multiply(v, e), 3 * tolerance);
      ExpectNear(e, Diagonal(values[0], b, 5, 5), 3 * tolerance);
      for (int64_t i = 1; i < 5; ++i) EXPECT_LE(e(i - 1, i - 1).real(), e(i, i).real());
    }
  }
}

TEST(Eig, FindsRealAndComplexPairs) {
  for (const auto& [type, tolerance] : kTypes) {
    SCOPED_TRACE(DataTypeName(type));
    const bool wide = type == DT_DOUBLE || type == DT_COMPLEX128;
    const AttrValue out = wide ? DT_COMPLEX128 : DT_COMPLEX64;
    const Tensor a = Irregular(type, {4, 5, 5});
    const Tensors ev = Results("Eig", a, {{"Tout", out}});
    const Tensors values = Results("Eig", a, {{"Tout", out}, {"compute_v", false}});
    ASSERT_EQ(ev.size(), 2u);
    for (int64_t b = 0; b < 4; ++b) {
      const Matrix e = Diagonal(ev[0], b, 5, 5), v = dense::Read(ev[1], b);
      ExpectNear(dense::Multiply(dense::Read(a, b), v), dense::Multiply(v, e), 10 * tolerance);
      dense::complex128 sum = 0, all = 0;
      for (int64_t i = 0; i < 5; ++i) {
        sum += e(i, i);
        all += dense::At(values[0], b * 5 + i);
        double norm = 0;
        for (int64_t j = 0; j < 5; ++j) norm += std::norm(v(j, i));
        EXPECT_NEAR(norm, 1, 10 * tolerance);
      }
      EXPECT_LT(std::abs(sum - all), 10 * tolerance);
    }
  }
}

// L L* of a random matrix, and Cholesky's result for it.
TEST(Cholesky, FactorsEveryType) {
  for (const auto& [type, tolerance] : kTypes) {
    SCOPED_TRACE(DataTypeName(type));
    Graph g;
    const Output m = Const(g, Irregular(type, {3, 4, 4}));
    const Output a = MatMul(m, m, {.adjoint_b = true});
    const Output l = Cholesky(a);
    const absl::StatusOr<Tensors> y = Evaluate(g, {a, l});
    ASSERT_TRUE(y.ok()) << y.status();
    for (int64_t b = 0; b < 3; ++b) {
      const Matrix factor = dense::Read((*y)[1], b);
      ExpectNear(dense::Multiply(factor, dense::Adjoint(factor)), dense::Read((*y)[0], b),
                 5 * tolerance);
      for (int64_t j = 1; j < 4; ++j) EXPECT_EQ(factor(0, j), 0.0);
    }
  }
}

TEST(Cholesky, IsNaNForOtherMatrices) {
  const Tensors l = Results("Cholesky", Tensor::Of<float>({2, 2}, {1, 2, 2, 1}));
  EXPECT_TRUE(std::isnan(l[0].data<float>()[0]));
  EXPECT_EQ(l[0].data<float>()[1], 0);
  EXPECT_TRUE(std::isnan(l[0].data<float>()[3]));
}

// Row 2 has a NaN in column 1, so row 3 has none before column 2.
TEST(Cholesky, IsNaNWhereItDependsOnOne) {
  const auto factor = [](std::initializer_list<float> values) {
    const Tensor l = Results("Cholesky", Tensor::Of<float>({4, 4}, values))[0];
    return std::vector<float>(l.data<float>(), l.data<float>() + 16);
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> whole = factor({4, 1, 2, 1, 1, 5, 1, 2, 2, 1, 6, 1, 1, 2, 1, 7});
  const std::vector<float> part = factor({4, 1, 2, 1, 1, 5, nan, 2, 2, nan, 6, 1, 1, 2, 1, -7});
  for (const size_t i : {0, 4, 5, 8, 12, 13}) EXPECT_FLOAT_EQ(part[i], whole[i]) << i;
  for (const size_t i : {9, 10, 14, 15}) EXPECT_TRUE(std::isnan(part[i])) << i;
  for (const size_t i : {1, 2, 3, 6, 7, 11}) EXPECT_EQ(part[i], 0) << i;
  // The leading part is not positive definite.
  const std::vector<float> none = factor({-4, 1, 2, 1, 1, 5, 1, 2, 2, nan, 6, 1, 1, 2, 1, 7});
  for (const size_t i : {0, 4, 5, 8, 12, 13}) EXPECT_TRUE(std::isnan(none[i])) << i;
}

TEST(MatrixFunctions, SquareRootAndLogarithm) {
  for (const auto& [type, tolerance] : kTypes) {
    SCOPED_TRACE(DataTypeName(type));
    Graph g;
    // Near 2 times the identity: no negative eigenvalues.
    const Output a = Const(g, Irregular(type, {2, 4, 4})) * 0.4 + 2 * Eye(g, 4, {}, type);
    const Output root = MatrixSquareRoot(a);
    Outputs wanted = {a, MatMul(root, root)};
    if (IsComplex(type)) wanted.push_back(2 * MatrixLogarithm(root) - MatrixLogarithm(a));
    const absl::StatusOr<Tensors> y = Evaluate(g, wanted);
    ASSERT_TRUE(y.ok()) << y.status();
    for (int64_t b = 0; b < 2; ++b) {
      ExpectNear(dense::Read((*y)[1], b), dense::Read((*y)[0], b), 10 * tolerance);
      if (IsComplex(type)) ExpectNear(dense::Read((*y)[2], b), Matrix(4, 4), 10 * tolerance);
    }
  }
}

// A nilpotent part: log of [[a, 1], [0, a]] is [[log a, 1/a], [0, log a]].
TEST(MatrixFunctions, LogarithmOfJordansBlockAndOfARotation) {
  using Z = std::complex<double>;
  const Tensors block =
      Results("MatrixLogarithm", Tensor::Of<Z>({2, 2}, {Z(50), Z(1), Z(0), Z(50)}));
  EXPECT_LT(std::abs(block[0].data<Z>()[0] - std::log(50.0)), 1e-14);
  EXPECT_LT(std::abs(block[0].data<Z>()[1] - 0.02), 1e-15);
  const Tensors turn = Results("MatrixLogarithm", Tensor::Of<Z>({2, 2}, {Z(0), Z(1), Z(-1), Z(0)}));
  EXPECT_LT(std::abs(turn[0].data<Z>()[1] - M_PI / 2), 1e-14);
}

TEST(MatrixFunctions, UndefinedResultsAreNaN) {
  const Tensors negative = Results("MatrixSquareRoot", Tensor::Of<double>({2, 2}, {-1, 0, 0, -4}));
  EXPECT_TRUE(std::isnan(negative[0].data<double>()[0]));
  const Tensors singular = Results("MatrixSquareRoot", Tensor::Of<double>({2, 2}, {0, 1, 0, 0}));
  EXPECT_TRUE(std::isnan(singular[0].data<double>()[0]));
}

TEST(TridiagonalSolve, SingularSystems) {
  const Tensor rows = Tensor::Of<double>({3, 3}, {1, 2, 0, 0, 0, 0, 0, 0, 0});
  const Tensor b = Tensor::Of<double>({3, 1}, {1, 2, 3});
  const auto plain = RunFed("TridiagonalSolve", {rows, b});
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_TRUE(std::isnan((*plain)[0].data<double>()[0]));
  const auto perturbed = RunFed("TridiagonalSolve", {rows, b}, {{"perturb_singular", true}});
  ASSERT_TRUE(perturbed.ok()) << perturbed.status();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(std::isfinite((*perturbed)[0].data<double>()[i]));
    EXPECT_GT(std::abs((*perturbed)[0].data<double>()[i]), 1e6);
  }
}

// TensorFlow checks the first matrix of a batch, and divides by the zero pivots of others.
TEST(Linalg, ZeroPivotOfALaterMatrixIsADivisor) {
  const Tensor bands = Tensor::Of<float>({2, 2, 2}, {2, 4, 1, 1, 2, 0, 1, 1});
  const Tensor reversed = Tensor::Of<float>({2, 2, 2}, {2, 0, 1, 1, 2, 4, 1, 1});
  const Tensor full = Tensor::Of<float>({2, 2, 2}, {2, 0, 1, 4, 2, 0, 1, 0});
  const Tensor rhs = Tensor::Of<float>({2, 1}, {1, 2});
  const std::vector<float> want = {0.5f, 0.375f, 0.5f, INFINITY};
  for (const auto& [op, matrix] :
       {std::pair("BandedTriangularSolve", bands), std::pair("MatrixTriangularSolve", full)}) {
    const auto y = RunFed(op, {matrix, rhs});
    ASSERT_TRUE(y.ok()) << y.status();
    const float* const x = (*y)[0].data<float>();
    EXPECT_EQ(std::vector<float>(x, x + 4), want) << op;
  }
  EXPECT_EQ(RunFed("BandedTriangularSolve", {reversed, rhs}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Sizes around the blocks in which matrices are factored and multiplied.
TEST(Linalg, FactorsMatricesOfSeveralBlocks) {
  for (const auto& [type, tolerance] : kTypes) {
    for (const int64_t n : {16, 17, 33, 65, 150}) {
      SCOPED_TRACE(testing::Message() << DataTypeName(type) << " " << n);
      const double bound = 4 * static_cast<double>(n) * tolerance;
      Graph g;
      const Output x = Const(g, Irregular(type, {n, n}));
      const Output a = x + static_cast<double>(n) / 8 * Eye(g, n, {}, type);
      const Output self_adjoint = MatMul(x, x, {.adjoint_b = true});
      const Output l = Cholesky(self_adjoint + Eye(g, n, {}, type));
      const Node* const qr = AddNode("Qr", {x});
      const Node* const svd = AddNode("Svd", {x});
      const Node* const values = AddNode("Svd", {x}, {{"compute_uv", false}});
      const Node* const eigen = AddNode("SelfAdjointEigV2", {self_adjoint});
      const absl::StatusOr<Tensors> y = Evaluate(
          g, {x, a, self_adjoint, l, AddOp("MatrixInverse", {a}),
              AddOp("MatrixInverse", {a}, {{"adjoint", true}}), AddOp("MatrixSolve", {a, x}),
              qr->output(0), qr->output(1), svd->output(0), svd->output(1), svd->output(2),
              values->output(0), eigen->output(0), eigen->output(1)});
      ASSERT_TRUE(y.ok()) << y.status();
      const auto matrix = [&y](size_t i) { return dense::Read((*y)[i], 0); };
      const Matrix identity = dense::Identity(n), factor = matrix(3), q = matrix(7);
      Matrix shifted = matrix(2);
      for (int64_t i = 0; i < n; ++i) shifted(i, i) += 1.0;
      ExpectNear(dense::Multiply(factor, dense::Adjoint(factor)), shifted, bound);
      ExpectNear(dense::Multiply(matrix(1), matrix(4)), identity, bound);
      ExpectNear(dense::Adjoint(matrix(4)), matrix(5), bound);
      ExpectNear(dense::Multiply(matrix(1), matrix(6)), matrix(0), bound);
      ExpectUnitary(q, bound);
      ExpectNear(dense::Multiply(q, matrix(8)), matrix(0), bound);
      const Matrix s = Diagonal((*y)[9], 0, n, n), u = matrix(10), v = matrix(11);
      ExpectUnitary(u, bound);
      ExpectNear(dense::Multiply(dense::Multiply(u, s), dense::Adjoint(v)), matrix(0), bound);
      ExpectNear(s, Diagonal((*y)[12], 0, n, n), bound);
      const Matrix e = Diagonal((*y)[13], 0, n, n), w = matrix(14);
      ExpectUnitary(w, bound);
      ExpectNear(dense::Multiply(matrix(2), w), dense::Multiply(w, e), bound);
    }
  }
}

// Orders around those of blocks, and right-hand sides of one to several panels of columns.
TEST(Linalg, SolvesTriangularSystemsInPanels) {
  for (const auto& [type, tolerance] : kTypes) {
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1, 300},
                               {4, 3},
                               {16, 2},
                               {17, 129},
                               {33, 1},
                               {50, 128},
                               {70, 257}}) {
      for (const int variant : {0, 1, 2, 3}) {
        const bool lower = variant % 2 == 1, adjoint = variant >= 2;
        SCOPED_TRACE(testing::Message() << DataTypeName(type) << " " << n << " " << k << " "
                                        << lower << " " << adjoint);
        Graph g;
        const Output x = Const(g, Irregular(type, {n, n})), b = Const(g, Irregular(type, {n, k}));
        const Output a = x + static_cast<double>(n) * Eye(g, n, {}, type);
        const absl::StatusOr<Tensors> y = Evaluate(
            g, {a, b,
                AddOp("MatrixTriangularSolve", {a, b}, {{"lower", lower}, {"adjoint", adjoint}})});
        ASSERT_TRUE(y.ok()) << y.status();
        Matrix triangle = dense::Read((*y)[0], 0);
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            if (lower ? j > i : j < i) triangle(i, j) = 0;
          }
        }
        if (adjoint) triangle = dense::Adjoint(triangle);
        ExpectNear(dense::Multiply(triangle, dense::Read((*y)[2], 0)), dense::Read((*y)[1], 0),
                   tolerance);
      }
    }
  }
}

// ---- errors

TEST(Linalg, RejectsInvalidArguments) {
  const Tensor vector = Tensor::Vector<float>({1, 2}), row = Tensor::Of<float>({1, 2}, {1, 2});
  const Tensor zero = Tensor::Zeros(DT_FLOAT, {2, 2}), stack = Tensor::Zeros(DT_FLOAT, {1, 2, 2});
  const Tensor bands = Tensor::Of<float>({2, 2}, {0, 1, 1, 1});
  const Tensor regularizer = Tensor::Scalar(0.0);
  const struct {
    const char* op;
    Tensors inputs;
    const char* message;
  } rows[] = {
      {"Cholesky", {vector}, "must have rank >= 2"},
      {"Cholesky", {row}, "Input matrix must be square."},
      {"Lu", {zero}, "Input is not invertible."},
      {"Qr", {vector}, "must have rank >= 2"},
      {"Svd", {vector}, "must have rank >= 2"},
      {"SelfAdjointEigV2", {row}, "Input matrix must be square."},
      {"MatrixInverse", {zero}, "Input is not invertible."},
      {"MatrixSolve", {zero, zero}, "Input matrix is not invertible."},
      {"MatrixSolve", {row, zero}, "must be a square matrix"},
      {"MatrixSolve", {zero, row}, "Input matrix and rhs are incompatible."},
      {"MatrixSolve", {zero, stack}, "must have the same rank."},
      {"MatrixSolveLs", {zero, zero, regularizer}, "rank deficient"},
      {"MatrixSolveLs", {zero, zero, Tensor::Scalar(-1.0)}, "l2_regularizer must be >= 0."},
      {"MatrixSolveLs", {zero, zero, Tensor::Vector<double>({1})}, "l2_regularizer"},
      {"MatrixTriangularSolve", {row, zero}, "must be square"},
      {"MatrixTriangularSolve", {zero, row}, "mismatch"},
      {"BandedTriangularSolve", {bands, bands}, "Input matrix is not invertible."},
      {"BandedTriangularSolve", {Tensor::Zeros(DT_FLOAT, {0, 2}), bands}, "must not be an empty"},
      {"BandedTriangularSolve", {Tensor::Zeros(DT_FLOAT, {3, 2}), bands}, "cannot exceed"},
      {"TridiagonalSolve", {bands, bands}, "matrix with 3 rows, got 2 rows."},
      {"TridiagonalMatMul", {row, row, vector, zero}, "same rank"},
      {"TridiagonalMatMul", {zero, row, row, zero}, "Invalid superdiagonal shape."},
      {"CholeskyGrad", {zero, stack}, "same shape"},
  };
  for (const auto& r : rows) {
    const absl::StatusOr<Tensors> y = RunFed(r.op, r.inputs);
    EXPECT_EQ(y.status().code(), absl::StatusCode::kInvalidArgument) << r.op << ": " << r.message;
    EXPECT_NE(y.status().message().find(r.message), std::string::npos) << y.status();
  }
  Tensor nan = Irregular(DT_FLOAT, {2, 2});
  nan.data<float>()[2] = NAN;
  EXPECT_EQ(RunFed("SelfAdjointEigV2", {nan}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RunFed("Eig", {nan}, {{"Tout", DT_COMPLEX64}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RunFed("TridiagonalSolve", {zero, zero},
                   {{"partial_pivoting", false}, {"perturb_singular", true}})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Linalg, DeprecatedOpsRunInOldGraphs) {
  Graph g;
  g.versions().producer = 8;
  const Output x = Const<double>(g, {1, 2, 2}, {2, 1, 1, 2});
  Outputs all;
  for (const char* op :
       {"BatchCholesky", "BatchMatrixInverse", "BatchMatrixDeterminant", "BatchSelfAdjointEig",
        "SelfAdjointEig", "BatchSelfAdjointEigV2", "BatchSvd"}) {
    all.push_back(AddOp(op, {x}));
  }
  all.push_back(AddOp("BatchCholeskyGrad", {all[0], x}));
  all.push_back(AddOp("BatchMatrixSolve", {x, x}));
  all.push_back(AddOp("BatchMatrixTriangularSolve", {x, x}));
  all.push_back(AddOp("BatchMatrixSolveLs", {x, x, Const<double>(g, 0.0)}));
  ASSERT_TRUE(g.status().ok()) << g.status();
  const absl::StatusOr<Tensors> y = Evaluate(g, all);
  ASSERT_TRUE(y.ok()) << y.status();
  const double first[] = {std::sqrt(2), 2.0 / 3, 3, 1, 1, 1, 3};
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_NEAR((*y)[i].data<double>()[0], first[i], 1e-14) << all[i].node->op_name();
    EXPECT_EQ((*y)[i].shape(), all[i].shape());
  }
  for (size_t i = 8; i < 11; ++i) EXPECT_NEAR((*y)[i].data<double>()[0], 1, 1e-14);
}

}  // namespace
}  // namespace weir
