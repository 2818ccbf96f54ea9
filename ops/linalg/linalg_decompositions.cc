#include "weir/ops/linalg/linalg.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/linalg/linalg_internal.h"

// Decompositions of matrices. Their gradients are built as TensorFlow's linalg_grad.py builds them.
// Sources: Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
// differentiation" (2008); Townsend, "Differentiating the singular value decomposition" (2016);
// Roberts and Roberts, "QR and LQ decomposition matrix backpropagation algorithms" (2020).
namespace weir {

// ---- shape functions

namespace {

int64_t MinDim(int64_t m, int64_t n) {
  if (m == 0 || n == 0) return 0;
  return m < 0 || n < 0 ? Shape::kUnknown : std::min(m, n);
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

// ---- gradients of Cholesky and eigenvalues

// Returns 1 / x, but 0 instead of infinity where x is 0 (equal eigenvalues).
Output SafeReciprocal(const Output& x) { return x * Reciprocal(x * x + 1e-20); }

// Returns F with F(i, j) = 1 / (e(j) - e(i)) and a zero diagonal.
Output Differences(const Output& e) {
  const Output f = SafeReciprocal(ExpandDims(e, -2) - ExpandDims(e, -1));
  return MatrixSetDiag(f, ZerosOf(e));
}

// Returns x with its diagonal halved.
Output HalfDiagonal(const Output& x) { return MatrixSetDiag(x, 0.5 * MatrixDiagPart(x)); }

Output Columns(const Output& x, std::optional<int64_t> first, std::optional<int64_t> last) {
  return StridedSlice(x, {Index::Ellipsis(), Index::All(), Index::Range(first, last)});
}

// Computes the self-adjoint part of L^-* P(L* dL) L^-1, where P takes the lower triangle and halves
// the diagonal.
Grads CholeskyGradient(GradContext& g) {
  const Output l = g.y();
  const Output shape = ShapeVector(l);
  const Output rows = StridedSlice(shape, {Index(-1)});
  const Output outer = StridedSlice(ShapeVector(l), {Index::Range(std::nullopt, -2)});
  const Output inverse = MatrixTriangularSolve(l, Eye(g.graph(), rows, outer, l.dtype()));
  const Output middle = MatrixBandPart(HalfDiagonal(Product(l, g.dy(), /*adjoint_a=*/true)), -1, 0);
  const Output da = Product(Product(inverse, middle, /*adjoint_a=*/true), inverse);
  return {(da + Adjoint(da)) * 0.5};
}

Grads SelfAdjointEigGradient(GradContext& g) {
  const Output e = g.y(0), de = g.dy(0), dv = g.dy(1);
  const ControlDependencies after(g.graph(), {de, dv});
  Output da;
  if (g.attr<bool>("compute_v")) {
    const Output v = g.y(1), f = Differences(e);
    const Output inner = MatrixDiag(de) + f * Product(v, dv, true);
    da = Product(v, Product(inner, v, false, true));
  } else {
    const Output v = SelfAdjointEig(g.x()).v;
    da = Product(v, Product(MatrixDiag(de), v, false, true));
  }
  // Only the lower triangle was read.
  da = MatrixBandPart(da + Adjoint(da), -1, 0);
  return {HalfDiagonal(da)};
}

Grads EigGradient(GradContext& g) {
  const Output e = g.y(0), de = g.dy(0), dv = g.dy(1);
  const ControlDependencies after(g.graph(), {de, dv});
  Output da;
  if (g.attr<bool>("compute_v")) {
    const Output v = g.y(1), vt = Adjoint(v), f = Conj(Differences(e));
    const Output vgv = Product(vt, dv);
    const Output diagonal = MatrixDiag(MatrixDiagPart(Cast(Real(vgv), vgv.dtype())));
    const Output middle = MatrixDiag(de) + f * (vgv - Product(Product(vt, v), diagonal));
    da = MatrixSolve(vt, Product(middle, vt));
  } else {
    const Output vt = Adjoint(Eig(g.x()).v);
    da = MatrixSolve(vt, Product(MatrixDiag(de), vt));
  }
  return {Cast(da, g.x().dtype())};
}

// ---- QR

// Computes x r^-* for an upper triangular r.
Output DivideByUpper(const Output& x, const Output& r) {
  return Adjoint(MatrixTriangularSolve(r, Adjoint(x), /*lower=*/false));
}

// For matrices with at least as many rows as columns.
Output DeepQrGradient(const Output& q, const Output& r, const Output& dq, const Output& dr) {
  const Output qdq = Product(q, dq, true);
  const Output qdq_skew = qdq - Adjoint(qdq);
  const Output rdr = Product(r, dr, false, true);
  const Output rdr_skew = rdr - Adjoint(rdr);
  const Output lower = MatrixBandPart(qdq_skew + rdr_skew, -1, 0);
  const Output a = Product(q, dr + DivideByUpper(lower, r));
  const Output b = DivideByUpper(dq - Product(q, qdq), r);
  const Output sum = a + b;
  if (!IsComplex(q.dtype())) return sum;
  // The diagonal of r is real, so the imaginary part of the diagonal is removed.
  const Output m = rdr - Adjoint(qdq);
  const Output diagonal = MatrixSetDiag(ZerosOf(m), MatrixDiagPart(m));
  const Output correction = diagonal - Cast(Real(diagonal), q.dtype());
  return sum + DivideByUpper(Product(q, Adjoint(correction)), r);
}

Grads QrGradient(GradContext& g) {
  const Output q = g.y(0), r = g.y(1), dq = g.dy(0), dr = g.dy(1);
  const int64_t r_rows = r.dim(-2), columns = r.dim(-1), rows = q.dim(-2);
  if (r_rows < 0 || columns < 0) {
    g.graph().Fail(Unimplemented("QrGrad not implemented with dynamic shapes. Received r.shape: ",
                                 r.shape().ToString()));
    return {};
  }
  if (r_rows > columns && rows == q.dim(-1)) {
    g.graph().Fail(
        Unimplemented("QrGrad not implemented when nrows > ncols and full_matrices is true. "
                      "Received r.shape=",
                      r.shape().ToString()));
    return {};
  }
  if (rows >= columns) return {DeepQrGradient(q, r, dq, dr)};
  // For wide matrices: a = [x, y] and r = [u, v], where y = q v, and x = q u is square.
  const Output y = Columns(g.x(), rows, std::nullopt), u = Columns(r, std::nullopt, rows);
  const Output dv = Columns(dr, rows, std::nullopt), du = Columns(dr, std::nullopt, rows);
  const Output dy = Product(q, dv);
  const Output dx = DeepQrGradient(q, u, dq + Product(y, dv, false, true), du);
  return {Concat({dx, dy}, -1)};
}

// ---- singular values

// The terms of the gradient for a matrix with at most as many rows (m) as columns (n).
struct SvdTerms {
  Output s, u, v, ds, du, dv;
  int64_t m, n;
  bool full;
};

// Returns the part of the gradient that comes from the columns of v beyond the first m.
Output TermBeyondSquare(const SvdTerms& t, const Output& v1, const Output& dv1,
                        const Output& s_inverse) {
  const Output dv1_adjoint = MatrixTranspose(dv1, /*conjugate=*/true);
  Output rest = dv1_adjoint - Product(Product(dv1_adjoint, v1), v1, false, true);
  if (t.full) {
    const Output v2 = Columns(t.v, t.m, t.n), dv2 = Columns(t.dv, t.m, t.n);
    rest = rest - Product(Product(v1, dv2, true), v2, false, true);
  }
  return Product(Product(t.u, s_inverse), rest);
}

// For complex matrices: u and v share a phase in each column.
Output PhaseTerm(const SvdTerms& t, const Output& v1, const Output& v_gv, const Output& s_inverse) {
  const Output shape = ShapeVector(t.s);
  const Output size = StridedSlice(shape, {Index(-1)});
  const Output outer = StridedSlice(shape, {Index::Range(std::nullopt, -1)});
  const Output l = Eye(t.s.graph(), size, outer, t.s.dtype()) * v_gv;
  const Output inner = Product(s_inverse, Adjoint(l) - l);
  return 0.5 * Product(t.u, Product(inner, v1, false, true));
}

Output WideSvdGradient(const SvdTerms& t) {
  const Output ds = MatrixDiag(t.ds), s = MatrixDiag(t.s), squares = Square(t.s);
  const Output f = Differences(squares);
  const Output s_inverse = MatrixDiag(SafeReciprocal(t.s));
  const Output v1 = Columns(t.v, std::nullopt, t.m), dv1 = Columns(t.dv, std::nullopt, t.m);
  const Output v_gv = Product(v1, dv1, true);
  const Output f_u = f * Product(t.u, t.du, true), f_v = f * v_gv;
  const Output inner = ds + Product(f_u + Adjoint(f_u), s) + Product(s, f_v + Adjoint(f_v));
  Output da = Product(t.u, Product(inner, v1, false, true));
  if (t.m != t.n) da = da + TermBeyondSquare(t, v1, dv1, s_inverse);
  if (IsComplex(t.s.dtype())) da = da + PhaseTerm(t, v1, v_gv, s_inverse);
  return da;
}

Grads SvdGradient(GradContext& g) {
  const Output a = g.x(), ds = Cast(g.dy(0), a.dtype());
  if (!g.attr<bool>("compute_uv")) {
    const SvdResult all = Svd(a);
    return {Product(all.u, Product(MatrixDiag(ds), all.v, false, true))};
  }
  SvdTerms t = {
      Cast(g.y(0), a.dtype()),      g.y(1), g.y(2), ds, g.dy(1), g.dy(2), a.dim(-2), a.dim(-1),
      g.attr<bool>("full_matrices")};
  if (t.m < 0 || t.n < 0) {
    g.graph().Fail(Unimplemented(
        "SVD gradient has not been implemented for input with unknown inner matrix shape."));
    return {};
  }
  if (t.full && std::abs(t.m - t.n) > 1) {
    g.graph().Fail(Unimplemented(
        "svd gradient is not implemented for abs(m - n) > 1 when full_matrices is True. Received: "
        "m=",
        t.m, " and n=", t.n));
    return {};
  }
  // A tall matrix is processed as its adjoint.
  const bool tall = t.m > t.n;
  if (tall) {
    std::swap(t.m, t.n);
    std::swap(t.u, t.v);
    std::swap(t.du, t.dv);
  }
  const ControlDependencies after(g.graph(), {t.ds, t.du, t.dv});
  const Output da = WideSvdGradient(t);
  return {tall ? MatrixTranspose(da, /*conjugate=*/true) : da};
}

// ---- op definitions

void AddFactorOps(OpRegistry* ops) {
  AddWithBatchForm(
      ops, "Cholesky", kAllTypes, CholeskyGradient, "BatchCholesky", kDoubleFloat,
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
      kDoubleFloat, [](OpSpec spec, const char* types) {
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
  ops->Add(self_adjoint("BatchSelfAdjointEig", kDoubleFloat));
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

}  // namespace

void AddDecompositionOps(OpRegistry* ops) {
  AddFactorOps(ops);
  AddEigenOps(ops);
}

// ---- builders

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

}  // namespace

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

}  // namespace weir
