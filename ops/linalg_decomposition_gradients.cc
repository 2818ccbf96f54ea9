#include <cstdlib>
#include <optional>

#include "weir/core/scope.h"
#include "weir/ops/linalg.h"
#include "weir/ops/linalg_internal.h"
#include "weir/ops/math_internal.h"

// Gradients of decompositions, built as TensorFlow's linalg_grad.py builds them. Sources: Giles,
// "Collected matrix derivative results for forward and reverse mode algorithmic differentiation"
// (2008); Townsend, "Differentiating the singular value decomposition" (2016); Roberts and Roberts,
// "QR and LQ decomposition matrix backpropagation algorithms" (2020).
namespace weir {

namespace {

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

}  // namespace

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

namespace {

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

}  // namespace

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

namespace {

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

}  // namespace

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

}  // namespace weir
