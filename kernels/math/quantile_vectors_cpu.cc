#include <cmath>
#include <limits>
#include <type_traits>

#include "weir/core/tensor/numeric_types.h"
#include "weir/kernels/math/special_vectors.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/math/quantile_vectors_cpu.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "hwy/contrib/math/math-inl.h"

// Quantiles of the normal distribution, and the inverse of the error function, which is one but for
// scale: erfinv(y) = ndtri((1 + y) / 2) / sqrt 2. Newton's iteration on erfc, which the scalar
// functions run, takes several exponentials and error functions per number. Quotients of
// polynomials need none. They are those of Wichura's algorithm AS 241 (1988) in form:
//
//   near the median, |q| = |p - 1/2| <= 0.425: q times a quotient in 0.425^2 - q^2;
//   in the tails, of probability t: a quotient in r - 1.6, where r = sqrt(-log t), in whose terms
//   the quantile is nearly linear: t = 5e-324 is r = 27.3.
//
// Both quotients were fitted to least maxima of the relative error (8e-17 and 4e-17) by least
// squares that are reweighted, as Lawson's iteration does. Their coefficients are all positive, so
// no digits cancel. The caller gives q and t separately: each is exact where it is used, while
// (1 + y) / 2 would lose digits of a small y, and 1 - p those of a small p.
HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/lib/vector_math-inl.h"

#include "weir/kernels/math/wide_vectors-inl.h"

// For |q| <= 0.425.
HWY_INLINE V QuantileOfCenter(V q) {
  const V s = hn::NegMulAdd(q, q, M::Num(0.180625));
  const V p = M::Polynomial(s, 2513.3133559056543216, 33474.843047756969444, 67333.216825642740192,
                            45955.281469678604403, 13738.452194293599801, 1972.1772209431949371,
                            133.15967902685325363, 3.3871328727963666063);
  const V r = M::Polynomial(s, 5234.5150767852663211, 28763.77556796545442, 39343.935054176793001,
                            21227.92244419381289, 5396.6422503159242774, 687.37607557831120019,
                            42.318648218139322309, 1.0);
  return hn::Mul(q, hn::Div(p, r));
}

// The distance from the median, for t <= 0.075.
HWY_INLINE V QuantileOfTail(V t) {
  const V r = hn::Sqrt(hn::Neg(M::Log(t))), s = hn::Sub(r, M::Num(1.6));
  const V p =
      M::Polynomial(s, 6.8842643561496410343e-8, 8.9706079877890994237e-6,
                    0.00038234014471021720882, 0.007496238179269595915, 0.079323861862011637501,
                    0.49619474679444997225, 1.9162347356755727869, 4.5730434623558784205,
                    6.4585254164016853245, 4.8316088224119698338, 1.4234371107496836003);
  const V q =
      M::Polynomial(s, 5.9116875906561686628e-16, 4.8678809765709819136e-8,
                    6.2654063341912911807e-6, 0.00026049935817958469788, 0.0049007555027752601543,
                    0.048821594799973973307, 0.28151717601692784359, 0.97474462206891950393,
                    1.9908041772250473804, 2.1945894971410964651, 1.0);
  return M::If(hn::Eq(t, M::Num(0)), M::Num(std::numeric_limits<double>::infinity()),
               hn::Div(p, q));
}

// The quantile of 1/2 + q, of which the nearer tail has the probability t. NaN if t is negative or
// NaN.
HWY_INLINE V Quantile(V q, V t) {
  const auto is_center = hn::Le(hn::Abs(q), M::Num(0.425));
  if (hn::AllTrue(D(), is_center)) return QuantileOfCenter(q);
  const V tail = hn::CopySign(QuantileOfTail(t), q);
  return hn::AllFalse(D(), is_center) ? tail : M::If(is_center, QuantileOfCenter(q), tail);
}

struct NdtriOfVector {
  static HWY_INLINE V Apply(V p) {
    return Quantile(hn::Sub(p, M::Num(0.5)), M::Min(p, hn::Sub(M::Num(1), p)));
  }
};
struct ErfinvOfVector {
  static HWY_INLINE V Apply(V y) {
    const V half = M::Num(0.5), tail = hn::Mul(hn::Sub(M::Num(1), hn::Abs(y)), half);
    return hn::Mul(Quantile(hn::Mul(y, half), tail), M::Num(0.70710678118654752440));
  }
};

void AddQuantileLoopsOfTarget(LoopRegistry* t) {
  t->AddUnary("Ndtri", DT_FLOAT, DT_FLOAT, WideUnaryLoop<NdtriOfVector, float>, 3);
  t->AddUnary("Ndtri", DT_DOUBLE, DT_DOUBLE, WideUnaryLoop<NdtriOfVector, double>, 3);
  t->AddUnary("Erfinv", DT_FLOAT, DT_FLOAT, WideUnaryLoop<ErfinvOfVector, float>, 3);
  t->AddUnary("Erfinv", DT_DOUBLE, DT_DOUBLE, WideUnaryLoop<ErfinvOfVector, double>, 3);
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {
namespace {
HWY_EXPORT(AddQuantileLoopsOfTarget);
}  // namespace

void AddQuantileVectors(LoopRegistry* t) { HWY_DYNAMIC_DISPATCH(AddQuantileLoopsOfTarget)(t); }

}  // namespace weir
#endif  // HWY_ONCE
