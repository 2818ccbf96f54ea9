#include <cmath>

#include "weir/tests/kernels/lib/dense.h"
#include "weir/tests/kernels/lib/op_case.h"

// Systems of equations and functions of matrices. Decompositions, whose results are not unique, are
// tested in linalg_test.cc.
namespace weir {

namespace {

using dense::Matrix;

const DataTypes kTypes = DataTypesOf(JoinLists<List<float, double>, Complexes>());

Matrix AdjointIf(const Node& node, const Matrix& a) {
  return node.attr_or<bool>("adjoint", false) ? dense::Adjoint(a) : a;
}

// Returns the triangle of `a` that the node reads.
Matrix Triangle(const Node& node, Matrix a) {
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) {
      if (node.attr<bool>("lower") ? j > i : j < i) a(i, j) = 0;
    }
  }
  return a;
}

// Expands bands, one per row, to a full matrix.
Matrix Unband(const Node& node, const Matrix& bands) {
  const int64_t n = bands.columns, count = bands.rows;
  const bool lower = node.attr<bool>("lower");
  Matrix a(n, n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t d = 0; d < count; ++d) {
      const int64_t j = lower ? i - d : i + count - 1 - d;
      if (j >= 0 && j < n) a(i, j) = bands(d, i);
    }
  }
  return a;
}

// Expands three diagonals, one per row, to a full matrix.
Matrix FromDiagonals(const Matrix& rows) {
  const int64_t n = rows.columns;
  Matrix a(n, n);
  for (int64_t i = 0; i < n; ++i) {
    a(i, i) = rows(1, i);
    if (i + 1 < n) a(i, i + 1) = rows(0, i);
    if (i > 0) a(i, i - 1) = rows(2, i);
  }
  return a;
}

Matrix Rows(const std::vector<Matrix>& rows) {
  Matrix all(static_cast<int64_t>(rows.size()), rows[0].columns);
  for (size_t i = 0; i < rows.size(); ++i) {
    for (int64_t j = 0; j < all.columns; ++j) all(static_cast<int64_t>(i), j) = rows[i](0, j);
  }
  return all;
}

using Matrices = std::vector<Matrix>;

Matrix SolveReference(const Node& n, const Matrices& x) {
  return dense::Solve(AdjointIf(n, x[0]), x[1]);
}
Matrix TriangularReference(const Node& n, const Matrices& x) {
  return dense::Solve(AdjointIf(n, Triangle(n, x[0])), x[1]);
}
Matrix BandedReference(const Node& n, const Matrices& x) {
  return dense::Solve(AdjointIf(n, Unband(n, x[0])), x[1]);
}
Matrix InverseReference(const Node& n, const Matrices& x) {
  return dense::Solve(AdjointIf(n, x[0]), dense::Identity(x[0].rows));
}
Matrix TridiagonalSolveReference(const Node&, const Matrices& x) {
  return dense::Solve(FromDiagonals(x[0]), x[1]);
}
Matrix TridiagonalProduct(const Node&, const Matrices& x) {
  return dense::Multiply(FromDiagonals(Rows({x[0], x[1], x[2]})), x[3]);
}

// (A* A + r I)^-1 A* b, which equals A* (A A* + r I)^-1 b if both exist.
Tensors LeastSquaresReference(const Node& node, const Tensors& in) {
  const double r = in[2].data<double>()[0];
  return dense::Each([r](const Node&, const Matrices& x) {
    const Matrix &a = x[0], adjoint = dense::Adjoint(a);
    const bool tall = a.rows >= a.columns;
    Matrix gramian = tall ? dense::Multiply(adjoint, a) : dense::Multiply(a, adjoint);
    for (int64_t i = 0; i < gramian.rows; ++i) gramian(i, i) += r;
    return tall ? dense::Solve(gramian, dense::Multiply(adjoint, x[1]))
                : dense::Multiply(adjoint, dense::Solve(gramian, x[1]));
  })(node, {in[0], in[1]});
}

// One result per matrix, in the batch's shape.
Tensors DeterminantReference(const Node& node, const Tensors& in) {
  const Shape batch = in[0].shape().Sub(0, -2);
  std::vector<Matrix> values, signs;
  for (int64_t b = 0; b < batch.num_elements(); ++b) {
    const complex128 d = dense::Determinant(dense::Read(in[0], b));
    Matrix value(1, 1), sign(1, 1);
    sign(0, 0) = d / std::abs(d);
    value(0, 0) = node.num_outputs() == 2 ? std::log(std::abs(d)) : d;
    values.push_back(value);
    signs.push_back(sign);
  }
  const Tensor value = dense::Write(in[0].dtype(), batch, values);
  if (node.num_outputs() == 1) return {value};
  return {dense::Write(in[0].dtype(), batch, signs), value};
}

// The measure by which LAPACK compares pivots.
double Size(const complex128& x) { return std::abs(x.real()) + std::abs(x.imag()); }

// Returns the factors, in one matrix, of the matrix with its rows in the order of descending
// pivots.
Tensors LuReference(const Node& node, const Tensors& in) {
  const Tensor& x = in[0];
  const int64_t n = x.dim(-1);
  const Shape batch = x.shape().Sub(0, -2);
  std::vector<Matrix> stack;
  Tensor p(node.output_type(1), batch.Concatenate({n}));
  for (int64_t b = 0; b < batch.num_elements(); ++b) {
    Matrix a = dense::Read(x, b);
    std::vector<int64_t> order(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) order[i] = i;
    for (int64_t k = 0; k < n; ++k) {
      int64_t pivot = k;
      for (int64_t i = k; i < n; ++i) {
        if (Size(a(i, k)) > Size(a(pivot, k))) pivot = i;
      }
      std::swap(order[k], order[pivot]);
      for (int64_t j = 0; j < n; ++j) std::swap(a(k, j), a(pivot, j));
      for (int64_t i = k + 1; i < n; ++i) {
        a(i, k) /= a(k, k);
        for (int64_t j = k + 1; j < n; ++j) a(i, j) -= a(i, k) * a(k, j);
      }
    }
    stack.push_back(a);
    for (int64_t i = 0; i < n; ++i) p.SetIntAt(b * n + i, order[i]);
  }
  return {dense::Write(x.dtype(), x.shape(), stack), p};
}

// The gradient of L with L L* = A: a change E of A changes L by L P(L^-1 E L^-*), where P keeps the
// lower triangle and half of the diagonal; the gradient collects that for each E.
Matrix CholeskyGradReference(const Node&, const Matrices& x) {
  const int64_t n = x[0].rows;
  Matrix l = x[0], result(n, n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j) l(i, j) = 0;
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      Matrix e(n, n);
      e(i, j) += 0.5;
      e(j, i) += 0.5;
      Matrix inner = dense::Solve(l, dense::Adjoint(dense::Solve(l, e)));
      for (int64_t r = 0; r < n; ++r) {
        inner(r, r) *= 0.5;
        for (int64_t c = r + 1; c < n; ++c) inner(r, c) = 0;
      }
      const Matrix change = dense::Multiply(l, inner);
      for (int64_t r = 0; r < n; ++r) {
        for (int64_t c = 0; c <= r; ++c) result(i, j) += change(r, c) * x[1](r, c);
      }
    }
  }
  return result;
}

OpCase Case(const char* op, const char* label, const OpReference& reference) {
  return OpCase(op).Label(label).Types(kTypes).ToleranceFactor(50).Reference(reference);
}
OpCase Case(const char* op, const char* label, dense::MatrixFunction f) {
  return Case(op, label, dense::Each(std::move(f)));
}

void AddSystems(std::vector<OpCase>* rows) {
  for (const bool adjoint : {false, true}) {
    const char* label = adjoint ? "adjoint" : "plain";
    rows->push_back(Case("MatrixSolve", label, SolveReference)
                        .Attr("adjoint", adjoint)
                        .Input({2, 3, 3})
                        .Input({2, 3, 2})
                        .Gradient(2));
    rows->push_back(Case("MatrixInverse", label, InverseReference)
                        .Attr("adjoint", adjoint)
                        .Input({2, 3, 3})
                        .Types(DataTypesOf(JoinLists<List<half, float, double>, Complexes>()))
                        .Gradient(2));
    for (const bool lower : {false, true}) {
      const std::string both = std::string(lower ? "lower_" : "upper_") + label;
      rows->push_back(Case("MatrixTriangularSolve", both.c_str(), TriangularReference)
                          .Attr("lower", lower)
                          .Attr("adjoint", adjoint)
                          .Input({3, 3}, {1, 2})
                          .Input({3, 4})
                          .Gradient(2));
      rows->push_back(Case("BandedTriangularSolve", both.c_str(), BandedReference)
                          .Attr("lower", lower)
                          .Attr("adjoint", adjoint)
                          .Input({2, 2, 4}, {1, 2})
                          .Input({2, 4, 3})
                          .Gradient(2));
    }
  }
}

// One matrix for several right-hand sides: a broadcast batch.
Tensors BroadcastTriangular(const Node& node, const Tensors& in) {
  const Matrix a = Triangle(node, dense::Read(in[0], 0));
  std::vector<Matrix> stack;
  for (int64_t b = 0; b < 2; ++b) stack.push_back(dense::Solve(a, dense::Read(in[1], b)));
  return {dense::Write(in[0].dtype(), in[1].shape(), stack)};
}

void AddEmpty(std::vector<OpCase>* rows) {
  rows->push_back(Case("MatrixSolve", "empty", SolveReference).Input({0, 0}).Input({0, 2}));
  rows->push_back(Case("MatrixInverse", "empty", InverseReference).Input({2, 0, 0}));
  rows->push_back(
      Case("MatrixTriangularSolve", "empty", TriangularReference).Input({0, 0}).Input({0, 2}));
  rows->push_back(Case("MatrixDeterminant", "empty", DeterminantReference).Input({2, 0, 0}));
  rows->push_back(Case("MatrixDeterminant", "none", DeterminantReference).Input({0, 2, 2}));
}

std::vector<OpCase> LinalgCases() {
  std::vector<OpCase> rows;
  AddSystems(&rows);
  AddEmpty(&rows);
  rows.push_back(Case("MatrixTriangularSolve", "broadcast", BroadcastTriangular)
                     .Input({1, 3, 3}, {1, 2})
                     .Input({2, 3, 2})
                     .Gradient(2));
  rows.push_back(Case("MatrixDeterminant", "", DeterminantReference).Input({2, 3, 3}).Gradient(2));
  rows.push_back(
      Case("LogMatrixDeterminant", "", DeterminantReference).Input({2, 3, 3}).Gradient(2));
  rows.push_back(Case("Lu", "", LuReference).Input({2, 4, 4}));
  rows.push_back(Case("Lu", "wide", LuReference).Attr("output_idx_type", DT_INT64).Input({3, 3}));
  rows.push_back(Case("CholeskyGrad", "", CholeskyGradReference)
                     .Types({DT_FLOAT, DT_DOUBLE})
                     .Input({2, 3, 3}, {1, 2})
                     .Input({2, 3, 3}));
  for (const auto& [label, shape, sides] : {std::tuple("tall", Shape({2, 4, 2}), Shape({2, 4, 3})),
                                            {"wide", Shape({2, 2, 4}), Shape({2, 2, 3})}}) {
    rows.push_back(Case("MatrixSolveLs", label, LeastSquaresReference)
                       .Input(shape)
                       .Input(sides)
                       .Input(Tensor::Scalar(0.5))
                       .Gradient(2));
    rows.push_back(
        Case("MatrixSolveLs", (std::string(label) + "_orthogonal").c_str(), LeastSquaresReference)
            .Attr("fast", false)
            .Input(shape)
            .Input(sides)
            .Input(Tensor::Scalar(0.0))
            .Gradient(0));
  }
  for (const bool pivoting : {false, true}) {
    rows.push_back(
        Case("TridiagonalSolve", pivoting ? "pivoting" : "thomas", TridiagonalSolveReference)
            .Attr("partial_pivoting", pivoting)
            .Input({2, 3, 5})
            .Input({2, 5, 2})
            .ToleranceFactor(1000)
            .Gradient(2));
  }
  rows.push_back(Case("TridiagonalSolve", "perturbed", TridiagonalSolveReference)
                     .Attr("perturb_singular", true)
                     .Input({3, 5})
                     .Input({5, 2})
                     .ToleranceFactor(1000));
  rows.push_back(Case("TridiagonalSolve", "one", TridiagonalSolveReference)
                     .Input({3, 1}, {1, 2})
                     .Input({1, 2}));
  rows.push_back(Case("TridiagonalMatMul", "", TridiagonalProduct)
                     .Input({2, 1, 4})
                     .Input({2, 1, 4})
                     .Input({2, 1, 4})
                     .Input({2, 4, 3})
                     .Gradient(2));
  return rows;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Linalg, OpSweepTest, testing::ValuesIn(LinalgCases()), OpCaseName);

}  // namespace weir
