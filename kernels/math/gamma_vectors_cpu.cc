#include "weir/kernels/math/special_vectors.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "weir/core/tensor/numeric_types.h"
#include "weir/kernels/math/special_functions.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/math/gamma_vectors_cpu.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "hwy/contrib/math/math-inl.h"

// The logarithm of the gamma function, for floats, and its derivative, by vectors of doubles. Both
// have asymptotic series for large arguments (Abramowitz and Stegun 6.1.41 and 6.3.18), and a
// recurrence that leads smaller arguments there:
//
//   log gamma(x) = log gamma(x + n) - log(x (x + 1) ... (x + n - 1))
//   psi(x) = psi(x + n) - (1 / x + 1 / (x + 1) + ... + 1 / (x + n - 1)).
//
// Every lane takes as many steps as it needs, by masks, and the loop ends when the last one is
// done. A step only multiplies: the sum of reciprocals is kept as a fraction, with one division at
// the end. Near 1 and 2, where log gamma is 0, a difference of large terms has no digits left;
// there it is (x - 1) (x - 2) times a polynomial in x - 3/2, fitted to 2e-10. Arguments that are
// not positive, and NaN, take the scalar functions.
HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/lib/vector_math-inl.h"

#include "weir/kernels/math/wide_vectors-inl.h"

// Where psi's series with seven terms has the digits of a double.
constexpr double kLargeForDigamma = 10;
// Where log gamma's series with five terms has those of a float.
constexpr double kLargeForLgamma = 4;

struct DigammaOfVector {
  static HWY_INLINE V Apply(V x) {
    V y = x, sum = M::Num(0), divisor = M::Num(1);  // of the fraction
    for (auto small = hn::Lt(y, M::Num(kLargeForDigamma)); !hn::AllFalse(D(), small);
         small = hn::Lt(y, M::Num(kLargeForDigamma))) {
      sum = M::If(small, hn::MulAdd(sum, y, divisor), sum);
      divisor = M::If(small, hn::Mul(divisor, y), divisor);
      y = M::If(small, hn::Add(hn::Max(y, M::Num(0)), M::Num(1)), y);
    }
    const V inverse = hn::Div(M::Num(1), y), z = hn::Mul(inverse, inverse);
    const V series = hn::Mul(z, M::Polynomial(z, 1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240,
                                              1.0 / 252, -1.0 / 120, 1.0 / 12));
    const V large = hn::Sub(hn::NegMulAdd(M::Num(0.5), inverse, M::Log(y)), series);
    return M::FixSpecialLanes(x, hn::Gt(x, M::Num(0)), hn::Sub(large, hn::Div(sum, divisor)),
                              [](double v) { return Digamma(v); });
  }
};

struct LgammaOfVector {
  static HWY_INLINE V Apply(V x) {
    const V distance = hn::Sub(x, M::Num(1.5));
    const auto is_near = hn::Le(hn::Abs(distance), M::Num(0.75));
    const auto usual = hn::And(hn::Gt(x, M::Num(0)), hn::Le(x, M::Num(0x1p128)));
    V result = Far(x);
    if (!hn::AllFalse(D(), is_near)) {
      const V quotient = M::Polynomial(
          distance, 0.00030187316839512738, -0.00042337377671384319, 4.0464938910255679e-5,
          -0.00018324153415124336, 0.00084086904367598581, -0.0012836754686522474,
          0.0018839433504634075, -0.0031831506510127455, 0.0054527691557923952,
          -0.0094291638545314166, 0.016796597118642589, -0.031308298134166908, 0.062911416339526294,
          -0.14595989882609734, 0.48312895046391132);
      const V roots = hn::Mul(hn::Sub(x, M::Num(1)), hn::Sub(x, M::Num(2)));
      result = M::If(is_near, hn::MulAdd(roots, quotient, M::Num(0)), result);  // not -0 at 1
    }
    return M::FixSpecialLanes(x, usual, result, [](double v) { return Lgamma(v); });
  }
  static HWY_INLINE V Far(V x) {
    V y = x, product = M::Num(1);
    for (auto small = hn::Lt(y, M::Num(kLargeForLgamma)); !hn::AllFalse(D(), small);
         small = hn::Lt(y, M::Num(kLargeForLgamma))) {
      product = M::If(small, hn::Mul(product, y), product);
      y = M::If(small, hn::Add(hn::Max(y, M::Num(0)), M::Num(1)), y);
    }
    const V inverse = hn::Div(M::Num(1), y), z = hn::Mul(inverse, inverse);
    const V series = hn::Mul(
        inverse, M::Polynomial(z, 1.0 / 1188, -1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12));
    constexpr double kHalfLogTwoPi = 0.91893853320467274178;
    const V main = hn::MulSub(hn::Sub(y, M::Num(0.5)), M::Log(y), y);
    return hn::Sub(hn::Add(main, hn::Add(series, M::Num(kHalfLogTwoPi))), M::Log(product));
  }
};

void AddGammaLoopsOfTarget(LoopRegistry* t) {
  t->AddUnary("Digamma", DT_FLOAT, DT_FLOAT, WideUnaryLoop<DigammaOfVector, float>, 5);
  t->AddUnary("Digamma", DT_DOUBLE, DT_DOUBLE, WideUnaryLoop<DigammaOfVector, double>, 5);
  t->AddUnary("Lgamma", DT_FLOAT, DT_FLOAT, WideUnaryLoop<LgammaOfVector, float>, 5);
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {
namespace {
HWY_EXPORT(AddGammaLoopsOfTarget);
}  // namespace

void AddGammaVectors(LoopRegistry* t) { HWY_DYNAMIC_DISPATCH(AddGammaLoopsOfTarget)(t); }

}  // namespace weir
#endif  // HWY_ONCE
