#include "weir/ops/linalg/linalg.h"

#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/linalg/linalg_internal.h"

// Systems of equations. Their gradients are built as TensorFlow's linalg_grad.py builds them.
namespace weir {

// ---- shape functions

namespace {

// A matrix and right-hand sides with the same number of rows and equal batch dimensions. x has as
// many rows as the matrix has columns.
absl::Status SystemShape(ShapeContext& c, const Shape& matrix) {
  WEIR_ASSIGN_OR_RETURN(const Shape rhs, c.WithRankAtLeast(1, 2));
  if (!matrix.has_rank() || !rhs.has_rank()) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const Shape batch, matrix.Sub(0, -2).MergeWith(rhs.Sub(0, -2)));
  WEIR_RETURN_IF_ERROR(MergeDims(matrix.dim(-2), rhs.dim(-2)).status());
  c.set_output(0, batch.Concatenate({matrix.dim(-1), rhs.dim(-1)}));
  return absl::OkStatus();
}
absl::Status SolveShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape matrix, SquareInput(c, 0));
  return SystemShape(c, matrix);
}
absl::Status SolveLsShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape matrix, c.WithRankAtLeast(0, 2));
  WEIR_RETURN_IF_ERROR(c.WithRank(2, 0).status());
  return SystemShape(c, matrix);
}

// A matrix whose batch dimensions broadcast with those of the right-hand sides.
absl::Status BroadcastSolveShape(ShapeContext& c, const Shape& matrix) {
  WEIR_ASSIGN_OR_RETURN(const Shape rhs, c.WithRankAtLeast(1, 2));
  if (!matrix.has_rank() || !rhs.has_rank()) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const Shape batch, BroadcastShapes(matrix.Sub(0, -2), rhs.Sub(0, -2)));
  WEIR_ASSIGN_OR_RETURN(const int64_t n, MergeDims(matrix.dim(-1), rhs.dim(-2)));
  c.set_output(0, batch.Concatenate({n, rhs.dim(-1)}));
  return absl::OkStatus();
}
absl::Status TriangularSolveShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape matrix, SquareInput(c, 0));
  return BroadcastSolveShape(c, matrix);
}
absl::Status BandedSolveShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape matrix, c.WithRankAtLeast(0, 2));
  if (matrix.has_rank()) {
    const int64_t bands = matrix.dim(-2), n = matrix.dim(-1);
    if (bands == 0) return InvalidArgument("Number of bands must be positive, but is 0");
    if (n >= 0 && bands > n) {
      return InvalidArgument("Number of bands ", bands, " cannot exceed the size of the matrix ",
                             n);
    }
  }
  return BroadcastSolveShape(c, matrix);
}

absl::Status TridiagonalSolveShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape diagonals, c.WithRankAtLeast(0, 2));
  WEIR_ASSIGN_OR_RETURN(const Shape rhs, c.WithRankAtLeast(1, 2));
  if (!diagonals.has_rank() || !rhs.has_rank()) {
    c.set_output(0, rhs);
    return absl::OkStatus();
  }
  WEIR_ASSIGN_OR_RETURN(const Shape batch, diagonals.Sub(0, -2).MergeWith(rhs.Sub(0, -2)));
  WEIR_RETURN_IF_ERROR(MergeDims(diagonals.dim(-2), 3).status());
  WEIR_ASSIGN_OR_RETURN(const int64_t n, MergeDims(diagonals.dim(-1), rhs.dim(-2)));
  c.set_output(0, batch.Concatenate({n, rhs.dim(-1)}));
  return absl::OkStatus();
}

absl::Status TridiagonalMatMulShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape diagonal, c.WithRankAtLeast(0, 2));
  for (int i = 1; i < 3; ++i) {
    WEIR_ASSIGN_OR_RETURN(const Shape other, c.WithRankAtLeast(i, 2));
    WEIR_ASSIGN_OR_RETURN(diagonal, diagonal.MergeWith(other));
  }
  WEIR_ASSIGN_OR_RETURN(const Shape rhs, c.WithRankAtLeast(3, 2));
  c.set_output(0, rhs);
  if (!diagonal.has_rank() || !rhs.has_rank()) return absl::OkStatus();
  WEIR_RETURN_IF_ERROR(diagonal.Sub(0, -2).MergeWith(rhs.Sub(0, -2)).status());
  WEIR_RETURN_IF_ERROR(MergeDims(diagonal.dim(-2), 1).status());
  return MergeDims(diagonal.dim(-1), rhs.dim(-2)).status();
}

// ---- gradients

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

}  // namespace

// ---- op definitions

void AddSolveOps(OpRegistry* ops) {
  AddWithBatchForm(ops, "MatrixSolve", kAllTypes, MatrixSolveGradient, "BatchMatrixSolve",
                   kDoubleFloat, [](OpSpec spec, const char* types) {
                     return spec.In("matrix: T, rhs: T")
                         .Out("output: T")
                         .Attr("adjoint: bool = false")
                         .Attr(types)
                         .InferShape(SolveShape)
                         .Doc("Solves matrix x = rhs for square matrices (or their adjoints).");
                   });
  AddWithBatchForm(
      ops, "MatrixTriangularSolve", "T: {bfloat16, double, float, half, complex64, complex128}",
      MatrixTriangularSolveGradient, "BatchMatrixTriangularSolve", kDoubleFloat,
      [](OpSpec spec, const char* types) {
        return spec.In("matrix: T, rhs: T")
            .Out("output: T")
            .Attr("lower: bool = true")
            .Attr("adjoint: bool = false")
            .Attr(types)
            .InferShape(TriangularSolveShape)
            .Doc(
                "Solves matrix x = rhs for triangular matrices (or their adjoints). The other "
                "triangle is not read.");
      });
  ops->Add(OpSpec("BandedTriangularSolve")
               .In("matrix: T, rhs: T")
               .Out("output: T")
               .Attr("lower: bool = true")
               .Attr("adjoint: bool = false")
               .Attr(kAllTypes)
               .InferShape(BandedSolveShape)
               .Gradient(BandedTriangularSolveGradient)
               .Doc("Solves triangular systems whose matrices are given by their diagonals."));
  AddWithBatchForm(ops, "MatrixSolveLs", kAllTypes, MatrixSolveLsGradient, "BatchMatrixSolveLs",
                   kDoubleFloat, [](OpSpec spec, const char* types) {
                     return spec.In("matrix: T, rhs: T, l2_regularizer: double")
                         .Out("output: T")
                         .Attr(types)
                         .Attr("fast: bool = true")
                         .InferShape(SolveLsShape)
                         .Doc("Computes the least-squares solution of matrix x = rhs.");
                   });
  ops->Add(OpSpec("TridiagonalSolve")
               .In("diagonals: T, rhs: T")
               .Out("output: T")
               .Attr("partial_pivoting: bool = true")
               .Attr("perturb_singular: bool = false")
               .Attr(kNoHalf)
               .InferShape(TridiagonalSolveShape)
               .Gradient(TridiagonalSolveGradient)
               .Doc("Solves tridiagonal systems. Returns NaN for singular ones, unless "
                    "perturb_singular perturbs them slightly."));
  ops->Add(OpSpec("TridiagonalMatMul")
               .In("superdiag: T, maindiag: T, subdiag: T, rhs: T")
               .Out("output: T")
               .Attr(kNoHalf)
               .InferShape(TridiagonalMatMulShape)
               .Gradient(TridiagonalMatMulGradient)
               .Doc("Multiplies tridiagonal matrices by rhs."));
}

// ---- builders

namespace {

Output SolveNode(absl::string_view op, Output matrix, Output rhs, bool lower, bool adjoint,
                 absl::string_view name) {
  return AddOp(op, {matrix, rhs}, {{"lower", lower}, {"adjoint", adjoint}}, name);
}

}  // namespace

Output MatrixSolve(Output matrix, Output rhs, bool adjoint, absl::string_view name) {
  return AddOp("MatrixSolve", {matrix, rhs}, {{"adjoint", adjoint}}, name);
}
Output MatrixTriangularSolve(Output matrix, Output rhs, bool lower, bool adjoint,
                             absl::string_view name) {
  return SolveNode("MatrixTriangularSolve", matrix, rhs, lower, adjoint, name);
}
Output BandedTriangularSolve(Output bands, Output rhs, bool lower, bool adjoint,
                             absl::string_view name) {
  return SolveNode("BandedTriangularSolve", bands, rhs, lower, adjoint, name);
}

Output CholeskySolve(Output chol, Output rhs, absl::string_view name) {
  if (!chol.valid() || !rhs.valid()) return {};
  const NameScope scope(chol.graph(), name);
  const Output y = MatrixTriangularSolve(chol, rhs);
  return MatrixTriangularSolve(chol, y, /*lower=*/true, /*adjoint=*/true);
}

Output MatrixSolveLs(Output matrix, Output rhs, double l2_regularizer, bool fast,
                     absl::string_view name) {
  if (!matrix.valid() || !rhs.valid()) return {};
  Graph& g = matrix.graph();
  NameScope scope(g, name.empty() ? "MatrixSolveLs" : name);
  const Output regularizer = Const<double>(g, l2_regularizer, "l2_regularizer");
  return AddOp("MatrixSolveLs", {matrix, rhs, regularizer}, {{"fast", fast}}, scope.name());
}

Output TridiagonalSolve(Output diagonals, Output rhs, const TridiagonalSolveOptions& options,
                        absl::string_view name) {
  return AddOp("TridiagonalSolve", {diagonals, rhs},
               {{"partial_pivoting", options.partial_pivoting},
                {"perturb_singular", options.perturb_singular}},
               name);
}
Output TridiagonalMatMul(Output superdiag, Output maindiag, Output subdiag, Output rhs,
                         absl::string_view name) {
  return AddOp("TridiagonalMatMul", {superdiag, maindiag, subdiag, rhs}, {}, name);
}

}  // namespace weir
