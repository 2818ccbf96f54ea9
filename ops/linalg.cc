#include "weir/ops/linalg.h"

#include <algorithm>

#include "weir/core/shape_context.h"
#include "weir/ops/linalg_internal.h"
#include "weir/ops/registry.h"

namespace weir {

namespace {

// ---- shape functions. Matrices are the last two dimensions; the dimensions before them are the
// batch.

// Returns the shape of input i, which must hold square matrices.
absl::StatusOr<Shape> SquareInput(ShapeContext& c, int i) {
  WEIR_ASSIGN_OR_RETURN(Shape s, c.WithRankAtLeast(i, 2));
  if (!s.has_rank()) return s;
  WEIR_ASSIGN_OR_RETURN(const int64_t n, MergeDims(s.dim(-2), s.dim(-1)));
  return s.Sub(0, -2).Concatenate({n, n});
}

absl::Status SquareShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape s, SquareInput(c, 0));
  c.set_output(0, s);
  return absl::OkStatus();
}

int64_t MinDim(int64_t m, int64_t n) {
  if (m == 0 || n == 0) return 0;
  return m < 0 || n < 0 ? Shape::kUnknown : std::min(m, n);
}

// One number (or two) for each matrix.
absl::Status DeterminantShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape s, SquareInput(c, 0));
  if (s.has_rank()) c.set_all_outputs(s.Sub(0, -2));
  return absl::OkStatus();
}

// The eigenvalues or singular values, and the vectors if requested.
absl::Status EigenShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape s, SquareInput(c, 0));
  if (s.has_rank()) c.set_output(0, s.Sub(0, -1));
  c.set_output(1, c.attr<bool>("compute_v") ? s : Shape({0}));
  return absl::OkStatus();
}

absl::Status SelfAdjointEigShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape s, SquareInput(c, 0));
  if (!s.has_rank()) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const int64_t rows, AddDims(s.dim(-1), 1));
  c.set_output(0, s.Sub(0, -2).Concatenate({rows, s.dim(-1)}));
  return absl::OkStatus();
}

absl::Status LuShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape s, SquareInput(c, 0));
  c.set_output(0, s);
  if (s.has_rank()) c.set_output(1, s.Sub(0, -1));
  return absl::OkStatus();
}

absl::Status QrShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape input, c.WithRankAtLeast(0, 2));
  if (!input.has_rank()) return absl::OkStatus();
  const int64_t m = input.dim(-2), n = input.dim(-1);
  const int64_t inner = c.attr<bool>("full_matrices") ? m : MinDim(m, n);
  const Shape batch = input.Sub(0, -2);
  c.set_output(0, batch.Concatenate({m, inner}));
  c.set_output(1, batch.Concatenate({inner, n}));
  return absl::OkStatus();
}

absl::Status SvdShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape input, c.WithRankAtLeast(0, 2));
  const bool vectors = c.attr<bool>("compute_uv"), full = c.attr<bool>("full_matrices");
  if (!vectors) {
    c.set_output(1, Shape({0}));
    c.set_output(2, Shape({0}));
  }
  if (!input.has_rank()) return absl::OkStatus();
  const int64_t m = input.dim(-2), n = input.dim(-1), inner = MinDim(m, n);
  const Shape batch = input.Sub(0, -2);
  c.set_output(0, batch.Concatenate({inner}));
  if (!vectors) return absl::OkStatus();
  c.set_output(1, batch.Concatenate({m, full ? m : inner}));
  c.set_output(2, batch.Concatenate({n, full ? n : inner}));
  return absl::OkStatus();
}

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

// ---- op definitions

constexpr char kAllTypes[] = "T: {double, float, half, complex64, complex128}";
constexpr char kFloatFirst[] = "T: {half, float, double, complex64, complex128}";
constexpr char kNoHalf[] = "T: {double, float, complex64, complex128}";
constexpr char kRealTypes[] = "T: {double, float}";

// Adds an op and its older Batch* form, which has fewer dtypes and no gradient and is rejected in
// newer graphs. `describe` sets the remaining properties of both.
using Describe = OpSpec (*)(OpSpec spec, const char* types);
void AddWithBatchForm(OpRegistry* ops, const char* op, const char* types,
                      const GradientFn& gradient, const char* batch_op, const char* batch_types,
                      Describe describe) {
  OpSpec spec = describe(OpSpec(op), types);
  if (gradient) spec.Gradient(gradient);
  ops->Add(std::move(spec));
  ops->Add(describe(OpSpec(batch_op), batch_types)
               .Deprecated(13, "use the op without Batch, which accepts batches"));
}

void AddFactorOps(OpRegistry* ops) {
  AddWithBatchForm(
      ops, "Cholesky", kAllTypes, CholeskyGradient, "BatchCholesky", kRealTypes,
      [](OpSpec spec, const char* types) {
        return spec.In("input: T")
            .Out("output: T")
            .Attr(types)
            .InferShape(SquareShape)
            .Doc(
                "Computes the Cholesky decomposition: the lower triangular L with L L* = "
                "input. The input is self-adjoint and positive definite; only its lower "
                "triangle is read.");
      });
  AddWithBatchForm(
      ops, "CholeskyGrad", "T: {half, float, double}", nullptr, "BatchCholeskyGrad",
      "T: {float, double}", [](OpSpec spec, const char* types) {
        return spec.In("l: T, grad: T")
            .Out("output: T")
            .Attr(types)
            .InferShape(SquareShape)
            .Doc(
                "Computes the gradient of Cholesky from its output l and the gradient of the "
                "output.");
      });
  ops->Add(OpSpec("Lu")
               .In("input: T")
               .Out("lu: T, p: output_idx_type")
               .Attr(kAllTypes)
               .Attr("output_idx_type: {int32, int64} = DT_INT32")
               .InferShape(LuShape)
               .Doc("Computes the LU decomposition of each matrix with its rows in the order p: a "
                    "lower triangular L with 1 on its diagonal times an upper triangular U. Both "
                    "are stored in lu."));
  ops->Add(OpSpec("Qr")
               .In("input: T")
               .Out("q: T, r: T")
               .Attr("full_matrices: bool = false")
               .Attr(kAllTypes)
               .InferShape(QrShape)
               .Gradient(QrGradient)
               .Doc("Computes the QR decomposition of each matrix in the last two dimensions: a "
                    "unitary matrix q times an upper triangular r."));
  AddWithBatchForm(
      ops, "Svd", kAllTypes, SvdGradient, "BatchSvd", kNoHalf, [](OpSpec spec, const char* types) {
        return spec.In("input: T")
            .Out("s: T, u: T, v: T")
            .Attr("compute_uv: bool = true")
            .Attr("full_matrices: bool = false")
            .Attr(types)
            .InferShape(SvdShape)
            .Doc(
                "Computes the singular values of each matrix, in descending order, and the "
                "singular vectors: input = u diag(s) v*.");
      });
}

void AddEigenOps(OpRegistry* ops) {
  AddWithBatchForm(
      ops, "SelfAdjointEigV2", kAllTypes, SelfAdjointEigGradient, "BatchSelfAdjointEigV2",
      kRealTypes, [](OpSpec spec, const char* types) {
        return spec.In("input: T")
            .Out("e: T, v: T")
            .Attr("compute_v: bool = true")
            .Attr(types)
            .InferShape(EigenShape)
            .Doc(
                "Computes the eigenvalues in ascending order and the eigenvectors, the "
                "columns of v, of self-adjoint matrices. Only the lower triangle is read.");
      });
  const auto self_adjoint = [](const char* op, const char* types) {
    return OpSpec(op)
        .In("input: T")
        .Out("output: T")
        .Attr(types)
        .Deprecated(11, "use SelfAdjointEigV2, which has two outputs")
        .InferShape(SelfAdjointEigShape)
        .Doc("Returns the eigenvalues in the first row and the eigenvectors below it.");
  };
  ops->Add(self_adjoint("SelfAdjointEig", "T: {double, float, half}"));
  ops->Add(self_adjoint("BatchSelfAdjointEig", kRealTypes));
  ops->Add(OpSpec("Eig")
               .In("input: T")
               .Out("e: Tout, v: Tout")
               .Attr("compute_v: bool = true")
               .Attr("T: {float, double, complex64, complex128}")
               .Attr("Tout: {complex64, complex128}")
               .InferShape(EigenShape)
               .Gradient(EigGradient)
               .Doc("Computes the eigenvalues and right eigenvectors, the columns of v, of square "
                    "matrices."));
}

void AddSolveOps(OpRegistry* ops) {
  AddWithBatchForm(ops, "MatrixSolve", kAllTypes, MatrixSolveGradient, "BatchMatrixSolve",
                   kRealTypes, [](OpSpec spec, const char* types) {
                     return spec.In("matrix: T, rhs: T")
                         .Out("output: T")
                         .Attr("adjoint: bool = false")
                         .Attr(types)
                         .InferShape(SolveShape)
                         .Doc("Solves matrix x = rhs for square matrices (or their adjoints).");
                   });
  AddWithBatchForm(
      ops, "MatrixTriangularSolve", "T: {bfloat16, double, float, half, complex64, complex128}",
      MatrixTriangularSolveGradient, "BatchMatrixTriangularSolve", kRealTypes,
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
                   kRealTypes, [](OpSpec spec, const char* types) {
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

void AddFunctionOfMatrixOps(OpRegistry* ops) {
  AddWithBatchForm(ops, "MatrixInverse", kAllTypes, MatrixInverseGradient, "BatchMatrixInverse",
                   kRealTypes, [](OpSpec spec, const char* types) {
                     return spec.In("input: T")
                         .Out("output: T")
                         .Attr("adjoint: bool = false")
                         .Attr(types)
                         .InferShape(SquareShape)
                         .Doc("Computes the inverse of square matrices (or of their adjoints).");
                   });
  AddWithBatchForm(ops, "MatrixDeterminant", kFloatFirst, MatrixDeterminantGradient,
                   "BatchMatrixDeterminant", "T: {float, double, complex64, complex128}",
                   [](OpSpec spec, const char* types) {
                     return spec.In("input: T")
                         .Out("output: T")
                         .Attr(types)
                         .InferShape(DeterminantShape)
                         .Doc("Computes the determinant of square matrices.");
                   });
  ops->Add(
      OpSpec("LogMatrixDeterminant")
          .In("input: T")
          .Out("sign: T, log_abs_determinant: T")
          .Attr(kFloatFirst)
          .InferShape(DeterminantShape)
          .Gradient(LogMatrixDeterminantGradient)
          .Doc("Computes the determinant as its sign and the logarithm of its absolute value."));
  ops->Add(OpSpec("MatrixSquareRoot")
               .In("input: T")
               .Out("output: T")
               .Attr(kAllTypes)
               .InferShape(SquareShape)
               .Gradient(MatrixSquareRootGradient)
               .Doc("Computes the principal square root of square matrices, or NaN where it does "
                    "not exist."));
  ops->Add(
      OpSpec("MatrixLogarithm")
          .In("input: T")
          .Out("output: T")
          .Attr("T: {complex64, complex128}")
          .InferShape(SquareShape)
          .Doc("Computes the principal logarithm of square matrices, or NaN for singular ones."));
}

}  // namespace

void AddLinalgOps(OpRegistry* ops) {
  AddFactorOps(ops);
  AddEigenOps(ops);
  AddSolveOps(ops);
  AddFunctionOfMatrixOps(ops);
}

}  // namespace weir
