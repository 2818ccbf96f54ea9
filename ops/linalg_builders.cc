#include "weir/core/scope.h"
#include "weir/ops/array_internal.h"
#include "weir/ops/linalg.h"
#include "weir/ops/math.h"

namespace weir {

namespace {

// Eigenvalues are complex numbers with the precision of x.
DataType EigenType(const Output& x) {
  return x.dtype() == DT_DOUBLE || x.dtype() == DT_COMPLEX128 ? DT_COMPLEX128 : DT_COMPLEX64;
}
Outputs EigOutputs(Output x, bool vectors, absl::string_view name) {
  return AllOutputs(AddNode("Eig", {x}, {{"compute_v", vectors}, {"Tout", EigenType(x)}}, name), 2);
}
Outputs SelfAdjointOutputs(Output x, bool vectors, absl::string_view name) {
  return AllOutputs(AddNode("SelfAdjointEigV2", {x}, {{"compute_v", vectors}}, name), 2);
}
Output SolveNode(absl::string_view op, Output matrix, Output rhs, bool lower, bool adjoint,
                 absl::string_view name) {
  return AddOp(op, {matrix, rhs}, {{"lower", lower}, {"adjoint", adjoint}}, name);
}

}  // namespace

Output MatrixTranspose(Output x, bool conjugate, absl::string_view name) {
  if (!x.valid()) return {};
  Graph& g = x.graph();
  const NameScope scope(g, name);
  const int rank = x.shape().rank();
  Ints perm;
  if (x.shape().has_rank()) {
    std::vector<int64_t> order(static_cast<size_t>(rank));
    for (int i = 0; i < rank; ++i) order[static_cast<size_t>(i)] = i;
    if (rank >= 2) std::swap(order[order.size() - 2], order[order.size() - 1]);
    perm = Ints(order);
  } else {
    const Output r = Rank(x);
    const Output outer = Range(g, 0, Subtract(r, 2, "sub"), 1, "Range");
    const Output last = Subtract(r, 1, "sub_1"), before = Subtract(r, 2, "sub_2");
    perm = Concat({outer, Stack({last, before}, 0, "concat/values_1")}, 0, "concat");
  }
  return conjugate && IsComplex(x.dtype()) ? ConjugateTranspose(x, perm, "transpose")
                                           : Transpose(x, perm, "transpose");
}

Output Adjoint(Output x, absl::string_view name) {
  if (!x.valid()) return {};
  const NameScope scope(x.graph(), name);
  return MatrixTranspose(x, /*conjugate=*/true);
}

Output Eye(Graph& graph, const Ints& rows, const Ints& batch, DataType dtype,
           absl::string_view name) {
  const NameScope scope(graph, name);
  if (!rows.is_tensor() && !batch.is_tensor()) {
    std::vector<int64_t> shape = batch.values();
    shape.push_back(rows.values().empty() ? 0 : rows.values()[0]);
    return MatrixDiag(Ones(graph, shape, dtype, "ones"));
  }
  const Output n = rows.In(graph, "rows", DT_INT32);
  const Output size = Minimum(n, n);
  const Output outer = batch.In(graph, "shape", DT_INT32);
  const Output shape = Concat({outer, Stack({size}, 0, "concat/values_1")}, 0, "concat");
  return MatrixDiag(Ones(graph, shape, dtype, "ones"));
}

Output Cholesky(Output x, absl::string_view name) { return AddOp("Cholesky", {x}, {}, name); }

LuResult Lu(Output x, DataType output_idx_type, absl::string_view name) {
  const Outputs y = AllOutputs(AddNode("Lu", {x}, {{"output_idx_type", output_idx_type}}, name), 2);
  return {y[0], y[1]};
}

QrResult Qr(Output x, bool full_matrices, absl::string_view name) {
  const Outputs y = AllOutputs(AddNode("Qr", {x}, {{"full_matrices", full_matrices}}, name), 2);
  return {y[0], y[1]};
}

SvdResult Svd(Output x, bool full_matrices, absl::string_view name) {
  const Outputs y = AllOutputs(
      AddNode("Svd", {x}, {{"compute_uv", true}, {"full_matrices", full_matrices}}, name), 3);
  return {Real(y[0]), y[1], y[2]};
}

Output SingularValues(Output x, absl::string_view name) {
  return Real(AddOp("Svd", {x}, {{"compute_uv", false}}, name));
}

EigenResult SelfAdjointEig(Output x, absl::string_view name) {
  const Outputs y = SelfAdjointOutputs(x, true, name);
  return {y[0], y[1]};
}
Output SelfAdjointEigvals(Output x, absl::string_view name) {
  return SelfAdjointOutputs(x, false, name)[0];
}
EigenResult Eig(Output x, absl::string_view name) {
  const Outputs y = EigOutputs(x, true, name);
  return {y[0], y[1]};
}
Output Eigvals(Output x, absl::string_view name) { return EigOutputs(x, false, name)[0]; }

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

Output MatrixInverse(Output x, bool adjoint, absl::string_view name) {
  return AddOp("MatrixInverse", {x}, {{"adjoint", adjoint}}, name);
}
Output MatrixDeterminant(Output x, absl::string_view name) {
  return AddOp("MatrixDeterminant", {x}, {}, name);
}
LogDeterminantResult LogMatrixDeterminant(Output x, absl::string_view name) {
  const Outputs y = AllOutputs(AddNode("LogMatrixDeterminant", {x}, {}, name), 2);
  return {y[0], y[1]};
}
Output MatrixSquareRoot(Output x, absl::string_view name) {
  return AddOp("MatrixSquareRoot", {x}, {}, name);
}
Output MatrixLogarithm(Output x, absl::string_view name) {
  return AddOp("MatrixLogarithm", {x}, {}, name);
}

}  // namespace weir
