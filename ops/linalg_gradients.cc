#include "weir/core/scope.h"
#include "weir/ops/cond.h"
#include "weir/ops/linalg.h"
#include "weir/ops/linalg_internal.h"
#include "weir/ops/math_internal.h"

// Gradients of systems of equations and of matrix functions, built as TensorFlow's linalg_grad.py
// builds them.
namespace weir {

Output Product(Output a, Output b, bool adjoint_a, bool adjoint_b) {
  return MatMul(a, b, {.adjoint_a = adjoint_a, .adjoint_b = adjoint_b});
}

namespace {

// Reshapes to [..., 1, 1]: one number for each matrix.
Output ReshapePerMatrix(const Output& numbers, const Output& one_each) {
  Graph& g = numbers.graph();
  return Reshape(numbers, Concat({ShapeVector(one_each), Const<int32_t>(g, {1, 1})}, 0));
}

Output OuterShape(const Output& shape) {
  return StridedSlice(shape, {Index::Range(std::nullopt, -2)});
}

// Returns the gradients of a solve, summed over the batch dimensions that were broadcast.
Grads SumOverBatches(const Output& a, const Output& b, Output grad_a, Output grad_b) {
  const Shape &sa = a.shape(), &sb = b.shape();
  if (sa.IsFullyDefined() && sb.IsFullyDefined() && sa.Sub(0, -2) == sb.Sub(0, -2)) {
    return {grad_a, grad_b};
  }
  const Output a_shape = ShapeVector(a), b_shape = ShapeVector(b);
  const BroadcastReductions axes = BroadcastGradientArgs(OuterShape(a_shape), OuterShape(b_shape));
  const Output dx = SumTo(grad_a, axes.r0, a_shape);
  return {dx, SumTo(grad_b, axes.r1, b_shape)};
}

// Returns -d x* or its adjoint: the gradient of a system's matrix, given the solution x and the
// gradient d of the right-hand sides.
Output SystemGradient(bool adjoint, const Output& x, const Output& d) {
  return Negative(adjoint ? Product(x, d, false, true) : Product(d, x, false, true));
}

}  // namespace

Grads MatrixInverseGradient(GradContext& g) {
  const Output inverse = g.y();
  const bool adjoint = g.attr<bool>("adjoint");
  return {Negative(
      Product(inverse, Product(g.dy(), inverse, adjoint, !adjoint), /*adjoint_a=*/!adjoint))};
}

Grads MatrixDeterminantGradient(GradContext& g) {
  const Output inverse = MatrixInverse(g.x(), /*adjoint=*/true);
  return {ReshapePerMatrix(g.dy() * g.y(), g.y()) * inverse};
}

Grads LogMatrixDeterminantGradient(GradContext& g) {
  const Output inverse = MatrixInverse(g.x(), /*adjoint=*/true);
  return {ReshapePerMatrix(g.dy(1), g.y(1)) * inverse};
}

namespace {

// Returns the Kronecker products of two batches of n x n matrices. `outer` is the batch shape.
Output KroneckerProduct(const Output& a, const Output& b, const Output& outer) {
  Graph& g = a.graph();
  const Output one = Const<int32_t>(g, {1});
  const auto order = [](const Output& x) {
    return Stack({StridedSlice(ShapeVector(x), {Index(-1)})}, 0);
  };
  const Output na = order(a), nb = order(b);
  const Output wide_a = Reshape(a, Concat({outer, na, one, na, one}, 0));
  const Output wide_b = Reshape(b, Concat({outer, one, nb, one, nb}, 0));
  const Output n = na * nb;
  return Reshape(wide_a * wide_b, Concat({outer, n, n}, 0));
}

}  // namespace

// R = sqrt(A) implies R dR + dR R = dA, a linear system for dR; its transpose is solved here.
Grads MatrixSquareRootGradient(GradContext& g) {
  const Output root = g.y();
  Graph& graph = g.graph();
  const Output shape = ShapeVector(root);
  const Output order = StridedSlice(shape, {Index(-1)});
  const Output count = ReduceProd(OuterShape(shape));
  const Output eye = Eye(graph, order, {}, root.dtype());
  const Output eyes = Reshape(Tile(Reshape(eye, {-1}), Stack({count}, 0)), shape);
  const Output outer = OuterShape(shape);
  const Output sum = Add(KroneckerProduct(eyes, MatrixTranspose(root), outer),
                         KroneckerProduct(root, eyes, outer));
  const Output rows = Stack({order * order}, 0);
  const Output da =
      Reshape(MatrixTranspose(g.dy()), Concat({outer, rows, Const<int32_t>(graph, {1})}, 0));
  return {MatrixTranspose(Reshape(MatrixSolve(sum, da), shape))};
}

Grads MatrixSolveGradient(GradContext& g) {
  const bool adjoint = g.attr<bool>("adjoint");
  const Output db = MatrixSolve(g.x(0), g.dy(), !adjoint);
  return {SystemGradient(adjoint, g.y(), db), db};
}

Grads MatrixTriangularSolveGradient(GradContext& g) {
  const bool adjoint = g.attr<bool>("adjoint"), lower = g.attr<bool>("lower");
  const Output a = g.x(0), b = g.x(1);
  const Output db = MatrixTriangularSolve(a, g.dy(), lower, !adjoint);
  const Output da = SystemGradient(adjoint, g.y(), db);
  return SumOverBatches(a, b, MatrixBandPart(da, lower ? -1 : 0, lower ? 0 : -1), db);
}

Grads BandedTriangularSolveGradient(GradContext& g) {
  const bool adjoint = g.attr<bool>("adjoint"), lower = g.attr<bool>("lower");
  const Output a = g.x(0), b = g.x(1);
  Graph& graph = g.graph();
  const Output bands = StridedSlice(ShapeVector(a), {Index(-2)});
  const Output db = BandedTriangularSolve(a, g.dy(), lower, !adjoint);
  const Output da = SystemGradient(adjoint, g.y(), db);
  const Output farthest = Subtract(bands, 1, "sub"), zero = Const(graph, int32_t{0});
  const Output k = lower ? Stack({Negative(farthest), zero}) : Stack({zero, farthest});
  return SumOverBatches(a, b, MatrixDiagPart(da, {.k = k, .align = "LEFT_RIGHT"}), db);
}

namespace {

// Returns the lower Cholesky factor of A* A + r I, or of A A* + r I.
Output GramianCholesky(const Output& a, const Output& regularizer, bool first_kind) {
  const Output gramian = Product(a, a, first_kind, !first_kind);
  const Output shape = ShapeVector(a);
  const Output outer = OuterShape(shape);
  const Output size = StridedSlice(shape, {Index(first_kind ? -1 : -2)});
  const Output eye = Eye(a.graph(), size, outer, a.dtype());
  return Cholesky(gramian + regularizer * eye);
}

// x = (A* A + r I)^-1 A* b.
Outputs OverdeterminedGradient(GradContext& g) {
  const Output a = g.x(0), b = g.x(1), x = g.y();
  const Output chol = GramianCholesky(a, Cast(g.x(2), a.dtype()), true);
  const Output z = CholeskySolve(chol, g.dy());
  const Output xz = Product(x, z, false, true);
  const Output both = xz + MatrixTranspose(xz);
  const Output da = Negative(Product(a, both)) + Product(b, z, false, true);
  return {da, Product(a, z)};
}

// x = A* (A A* + r I)^-1 b.
Outputs UnderdeterminedGradient(GradContext& g) {
  const Output a = g.x(0), b = g.x(1);
  const Output chol = GramianCholesky(a, Cast(g.x(2), a.dtype()), false);
  const Output db = CholeskySolve(chol, Product(a, g.dy()));
  const Output y = CholeskySolve(chol, b);
  const Output a1 = Negative(Product(db, Product(y, a, true)));
  const Output rest = g.dy() - Product(a, db, true);
  return {a1 + Product(y, rest, false, true), db};
}

}  // namespace

Grads MatrixSolveLsGradient(GradContext& g) {
  if (!g.attr<bool>("fast")) {
    g.graph().Fail(InvalidArgument("Gradient not defined for fast=False: ", g.node().Label()));
    return {};
  }
  const Output a = g.x(0);
  const int64_t m = a.dim(-2), n = a.dim(-1);
  Outputs grads;
  if (m >= 0 && n >= 0) {
    grads = m >= n ? OverdeterminedGradient(g) : UnderdeterminedGradient(g);
  } else {
    const Output shape = StridedSlice(ShapeVector(a), {Index::Range(-2, std::nullopt)});
    const Output tall = GreaterEqual(StridedSlice(shape, {Index(-2)}),
                                     StridedSlice(shape, {Index(-1)}), "GreaterEqual");
    g.dy();  // created outside of the branches
    grads = Cond(tall, BranchListFn([&] { return OverdeterminedGradient(g); }),
                 BranchListFn([&] { return UnderdeterminedGradient(g); }));
  }
  if (grads.size() != 2) return {};
  return {grads[0], grads[1]};
}

// ---- tridiagonal systems

namespace {

// Paddings of the last (or the last two) dimensions only.
Output Paddings(const Output& x, const Output& last) {
  Graph& g = x.graph();
  const Output free = Stack({Subtract(Rank(x), 2, "sub"), Const(g, int32_t{2})}, 0);
  return Concat({Zeros(g, free, DT_INT32), last}, 0);
}

// Shifts the rows of each matrix up (or down) by one and fills with zeros.
Output ShiftUp(const Output& x) {
  const Output pad = Paddings(x, Const<int32_t>(x.graph(), Shape({2, 2}), {0, 1, 0, 0}));
  return Pad(StridedSlice(x, {Index::Ellipsis(), Index::Range(1, std::nullopt), Index::All()}),
             pad);
}
Output ShiftDown(const Output& x) {
  const Output pad = Paddings(x, Const<int32_t>(x.graph(), Shape({2, 2}), {1, 0, 0, 0}));
  return Pad(StridedSlice(x, {Index::Ellipsis(), Index::Range(std::nullopt, -1), Index::All()}),
             pad);
}
// Shifts along the last dimension.
Output ShiftRow(const Output& row, bool left) {
  Graph& g = row.graph();
  const Index part = left ? Index::Range(1, std::nullopt) : Index::Range(std::nullopt, -1);
  const Output cut = StridedSlice(row, {Index::Ellipsis(), part});
  if (row.shape().IsFullyDefined()) {
    Shape shape = row.shape();
    shape.set_dim(shape.rank() - 1, 1);
    const Output zeros = Zeros(g, shape, row.dtype());
    return Concat(left ? Outputs{cut, zeros} : Outputs{zeros, cut}, -1);
  }
  const Output free = Stack({Subtract(Rank(row), 1, "sub"), Const(g, int32_t{2})}, 0);
  const Output last =
      left ? Const<int32_t>(g, Shape({1, 2}), {0, 1}) : Const<int32_t>(g, Shape({1, 2}), {1, 0});
  return Pad(cut, Concat({Zeros(g, free, DT_INT32), last}, 0));
}

Output SumOfColumns(const Output& x) { return ReduceSum(x, -1); }

Output Diagonal(const Output& diagonals, int64_t row) {
  return StridedSlice(diagonals, {Index::Ellipsis(), Index(row), Index::All()});
}

// Returns the diagonals of the transposed matrix.
Output TransposeDiagonals(const Output& diagonals) {
  const Output main = Diagonal(diagonals, 1);
  const Output super = ShiftRow(Diagonal(diagonals, 2), true);
  const Output sub = ShiftRow(Diagonal(diagonals, 0), false);
  return Stack({super, main, sub}, -2);
}

}  // namespace

Grads TridiagonalMatMulGradient(GradContext& g) {
  const auto conjugate_column = [&](int i) { return MatrixTranspose(g.x(i), /*conjugate=*/true); };
  const Output super = conjugate_column(0), main = conjugate_column(1), sub = conjugate_column(2);
  const Output x = Conj(g.x(3)), dy = g.dy();
  const Output d_super = SumOfColumns(ShiftUp(x) * dy);
  const Output d_main = SumOfColumns(x * dy);
  const Output d_sub = SumOfColumns(ShiftDown(x) * dy);
  const Output d_rhs = ShiftDown(super * dy) + main * dy + ShiftUp(sub * dy);
  return {ExpandDims(d_super, -2), ExpandDims(d_main, -2), ExpandDims(d_sub, -2), d_rhs};
}

Grads TridiagonalSolveGradient(GradContext& g) {
  const Output x = g.y();
  const TridiagonalSolveOptions options = {g.attr<bool>("partial_pivoting"),
                                           g.attr<bool>("perturb_singular")};
  const Output db = TridiagonalSolve(TransposeDiagonals(g.x(0)), g.dy(), options);
  const Output main = SumOfColumns(db * x);
  const Output super = SumOfColumns(db * ShiftUp(x));
  const Output sub = SumOfColumns(db * ShiftDown(x));
  return {Negative(Stack({super, main, sub}, -2)), db};
}

}  // namespace weir
